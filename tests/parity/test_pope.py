"""Polar positions as in x-transformers' encoder and decoder."""

from collections.abc import Callable

import torch
from x_transformers import Encoder as TheirEncoder

from .copy_weights import Source, Tensors
from .originals import TOLERANCE, difference, sample
from .x_layers import pair

Record = Callable[[str, object], None]


def phases(source: Source) -> Tensors:
    name = "encoder.position.mechanisms.pope.phases"
    return {name: source.take("polar_pos_emb.learned_bias")}


@torch.no_grad()
def test_encoders_of_x_transformers_equal(record_property: Record) -> None:
    original, encoder = pair(TheirEncoder, {"name": "pope"}, phases, polar_pos_emb=True)
    gaps = []
    for length in (1, 6, 11, 24):
        ids, visible, _ = sample(length)
        theirs = original(encoder.tokens(ids), mask=visible)
        gaps.append(difference(encoder(ids, visible=visible), theirs, visible))
    record_property("difference", max(gaps))
    assert max(gaps) <= TOLERANCE
