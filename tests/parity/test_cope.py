"""Causal CoPE as in x-transformers' decoder."""

from collections.abc import Callable

import pytest
import torch
from x_transformers import Decoder
from x_transformers.x_transformers import CoPE as TheirCoPE

from posattn.testing.mechanism_case import MechanismCase

from .copy_weights import Source, Tensors
from .originals import TOLERANCE, difference, sample
from .x_layers import DEPTH, pair

Record = Callable[[str, object], None]


def tables(source: Source) -> Tensors:
    return {
        f"encoder.layers.{layer}.attention.position.parts.cope.left.weight": source.take(
            f"layers.{2 * layer}.1.attend.cope.pos_emb"
        )
        for layer in range(DEPTH)
    }


@torch.no_grad()
@pytest.mark.parametrize("max_position", [4, 16])
def test_causal_layers_of_x_transformers_equal(max_position: int, record_property: Record) -> None:
    original, encoder = pair(
        Decoder,
        {"name": "cope", "causal": True, "max_position": max_position},
        tables,
        attn_use_cope=True,
        attn_cope_max_pos=max_position,
    )
    gaps = []
    for length in (2, 6, 11, 24):
        ids, visible, _ = sample(length)
        theirs = original(encoder.tokens(ids), mask=visible)
        gaps.append(difference(encoder(ids, visible=visible), theirs, visible))
    record_property("difference", max(gaps))
    assert max(gaps) <= TOLERANCE


@torch.no_grad()
@pytest.mark.parametrize("max_position", [3, 40])
def test_unmasked_counts_run_to_the_end_as_in_x_transformers(
    max_position: int, record_property: Record
) -> None:
    case = MechanismCase("cope", {"count": "to_end", "max_position": max_position})
    attention, hidden, positions = case.attention(), case.hidden(2, 9), torch.arange(9)[None]
    call = attention.call(hidden, hidden, attention.prepared(positions, positions))
    original = TheirCoPE(dim=8, heads=4, max_pos=max_position).double()
    original.pos_emb.copy_(attention.attention.position.parts["cope"].left.weight)
    theirs = original(call.query, call.scale * call.query @ call.key.mT)
    gap = float((call.bias.materialize() - theirs).abs().max())
    record_property("difference", gap)
    assert gap <= TOLERANCE
