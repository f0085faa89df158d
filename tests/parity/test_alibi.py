"""ALiBi: slopes as in MPT and BLOOM, and x-transformers' encoders with ALiBi and with rotary pairs."""

from collections.abc import Callable

import pytest
import torch
from torch import nn
from transformers.models.bloom.modeling_bloom import build_alibi_tensor
from transformers.models.mpt.modeling_mpt import build_mpt_alibi_tensor
from x_transformers import Encoder as TheirEncoder
from x_transformers.x_transformers import AlibiPositionalBias

from posattn.mechanisms import ALiBi, ALiBiConfig, EncoderDims, Geometry, Heads, Site
from posattn.positions import authors_slopes

from .originals import HEADS, HIDDEN, TOLERANCE, difference, sample
from .x_layers import pair

Record = Callable[[str, object], None]


@pytest.mark.parametrize("num_heads", [4, 6, 8, 12, 20])
def test_slopes_equal_those_of_mpt_and_bloom(num_heads: int) -> None:
    slopes = torch.tensor(authors_slopes(num_heads))
    mpt = -build_mpt_alibi_tensor(num_heads, 2)[:, 0, 0]  # at one token's distance
    bloom = build_alibi_tensor(torch.ones(1, 2), num_heads, torch.float32)[:, 0, 1]
    torch.testing.assert_close(slopes, mpt, rtol=1e-6, atol=0)
    torch.testing.assert_close(slopes, bloom, rtol=1e-6, atol=0)


@pytest.mark.parametrize("num_heads", [2, 4, 6, 12])
def test_the_symmetric_bias_equals_that_of_x_transformers(num_heads: int) -> None:
    mechanism = ALiBi(ALiBiConfig(), EncoderDims(num_heads * 4, num_heads))
    positions = torch.arange(7)[None]
    prepared = mechanism.prepare(Geometry(positions, positions))
    heads = Heads(*(torch.zeros(1, num_heads, 7, 4) for _ in range(3)))
    projection = nn.Linear(4, 4)
    site = Site(heads, 0.5, prepared, mechanism.make_layer(), projection, projection)
    ours = mechanism.bias(site).materialize()[0]
    theirs = AlibiPositionalBias(num_heads)(7, 7)
    torch.testing.assert_close(ours, theirs, rtol=1e-6, atol=0)


CASES = {
    "alibi": ({"name": "alibi"}, {"alibi_pos_bias": True}),
    "rotary": (
        {"name": "rope", "layout": "interleaved"},
        {"rotary_pos_emb": True, "rotary_emb_dim": HIDDEN // HEADS},
    ),
    "partial rotary": (
        {"name": "rope", "layout": "interleaved", "fraction": 0.67},
        {"rotary_pos_emb": True, "rotary_emb_dim": 4},
    ),
    "none": ({"name": "none"}, {}),
}


@torch.no_grad()
@pytest.mark.parametrize("case", CASES)
def test_encoders_of_x_transformers_equal(case: str, record_property: Record) -> None:
    mechanism, options = CASES[case]
    original, encoder = pair(TheirEncoder, mechanism, **options)
    gaps = []
    for length in (1, 6, 11, 24):
        ids, visible, _ = sample(length)
        theirs = original(encoder.tokens(ids), mask=visible)
        gaps.append(difference(encoder(ids, visible=visible), theirs, visible))
    record_property("difference", max(gaps))
    assert max(gaps) <= TOLERANCE
