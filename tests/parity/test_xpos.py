"""xPos as in x-transformers' decoder."""

from collections.abc import Callable

import pytest
import torch
from x_transformers import Decoder

from .originals import HEADS, HIDDEN, difference, sample
from .x_layers import pair

Record = Callable[[str, object], None]


@torch.no_grad()
@pytest.mark.parametrize("scale_base", [512, 16])
def test_causal_layers_of_x_transformers_equal(scale_base: int, record_property: Record) -> None:
    original, encoder = pair(
        Decoder,
        {"name": "xpos", "causal": True, "scale_base": float(scale_base)},
        rotary_xpos=True,
        rotary_emb_dim=HIDDEN // HEADS,
        rotary_xpos_scale_base=scale_base,
    )
    gaps = []
    for length in (1, 6, 11, 24):
        ids, visible, _ = sample(length)
        theirs = original(encoder.tokens(ids), mask=visible)
        gaps.append(difference(encoder(ids, visible=visible), theirs, visible))
    record_property("difference", max(gaps))
    assert max(gaps) <= 2e-5
