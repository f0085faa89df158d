"""ALiBi: slopes as in MPT and BLOOM, and x-transformers' encoders with ALiBi and with rotary pairs."""

import warnings
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn
from transformers.models.bloom.modeling_bloom import build_alibi_tensor
from transformers.models.mpt.modeling_mpt import build_mpt_alibi_tensor
from x_transformers import Encoder as TheirEncoder
from x_transformers.x_transformers import AlibiPositionalBias

from posattn.encoder.config import EncoderConfig
from posattn.encoder.encoder import Encoder
from posattn.mechanisms import ALiBi, ALiBiConfig, EncoderDims, Geometry, Heads, Site
from posattn.positions import authors_slopes

from .copy_weights import Source, x_transformers
from .originals import HEADS, HIDDEN, TOLERANCE, VOCAB, difference, randomized, sample

Record = Callable[[str, object], None]
DEPTH = 2


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


def pair(mechanism: dict[str, Any], **options: Any) -> tuple[TheirEncoder, Encoder]:
    """Return x-transformers' encoder and ours with its weights."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        original = TheirEncoder(
            dim=HIDDEN,
            depth=DEPTH,
            heads=HEADS,
            attn_dim_head=HIDDEN // HEADS,
            ff_mult=2,
            verbose=False,
            **options,
        )
    original = randomized(original)
    config = EncoderConfig(
        hidden_size=HIDDEN,
        num_layers=DEPTH,
        num_heads=HEADS,
        intermediate_size=2 * HIDDEN,
        embedding_norm=False,
        projection_bias="none",
        norm={"placement": "pre", "eps": 1e-5},
        mechanism=mechanism,
    )
    source = Source(original.state_dict())
    tensors = {
        key.removeprefix("encoder."): value for key, value in x_transformers(source, DEPTH).items()
    }
    assert source.unused() == []
    encoder = Encoder(config, VOCAB).eval()
    tensors["tokens.weight"] = torch.randn(
        VOCAB, HIDDEN, generator=torch.Generator().manual_seed(2)
    )
    encoder.load_state_dict(tensors, strict=True)
    return original, encoder


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
    original, encoder = pair(mechanism, **options)
    gaps = []
    for length in (1, 6, 11, 24):
        ids, visible, _ = sample(length)
        theirs = original(encoder.tokens(ids), mask=visible)
        gaps.append(difference(encoder(ids, visible=visible), theirs, visible))
    record_property("difference", max(gaps))
    assert max(gaps) <= TOLERANCE
