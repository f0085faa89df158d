"""T5: buckets, bias, attention and whole encoders of transformers; buckets and bias of x-transformers."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from transformers import T5Config as TheirConfig
from transformers import T5EncoderModel
from transformers.models.t5.modeling_t5 import T5Attention
from x_transformers.x_transformers import RelativePositionBias

from posattn.encoder.encoder import Encoder
from posattn.mechanisms import EncoderDims, Geometry, T5Bias, T5Config
from posattn.positions import t5_buckets

from .originals import (
    HEADS,
    HIDDEN,
    INNER,
    LAYERS,
    LENGTHS,
    TOLERANCE,
    VOCAB,
    difference,
    imported_encoder,
    randomized,
    sample,
    shape,
)

Record = Callable[[str, object], None]
BUCKETS = [(32, 128), (8, 20), (64, 4096)]


def their_config(num_buckets: int = 8, max_distance: int = 12, **options: Any) -> TheirConfig:
    return TheirConfig(
        vocab_size=VOCAB,
        d_model=HIDDEN,
        d_kv=HIDDEN // HEADS,
        d_ff=INNER,
        num_layers=LAYERS,
        num_heads=HEADS,
        relative_attention_num_buckets=num_buckets,
        relative_attention_max_distance=max_distance,
        dropout_rate=0.0,
        **options,
    )


def our_bias(table: torch.Tensor, length: int, **options: Any) -> torch.Tensor:
    """Return our bias of a whole sequence with this table."""
    mechanism = T5Bias(T5Config(**options), EncoderDims(4 * table.shape[1], table.shape[1]))
    mechanism.load_state_dict({"table.weight": table})
    positions = torch.arange(length)[None]
    return mechanism.prepare(Geometry(positions, positions)).materialize()


@pytest.mark.parametrize(("num_buckets", "max_distance"), BUCKETS)
@pytest.mark.parametrize("bidirectional", [True, False])
def test_buckets_equal_those_of_both_libraries(
    num_buckets: int, max_distance: int, bidirectional: bool
) -> None:
    distance = torch.arange(-3000, 3001)
    ours = t5_buckets(distance, num_buckets, max_distance, bidirectional)
    theirs = T5Attention._relative_position_bucket(
        -distance, bidirectional, num_buckets, max_distance
    )
    others = RelativePositionBias._relative_position_bucket(
        -distance, not bidirectional, num_buckets, max_distance
    )
    assert torch.equal(ours, theirs)
    assert torch.equal(ours, others)


@torch.no_grad()
@pytest.mark.parametrize("bidirectional", [True, False], ids=["encoder", "decoder"])
@pytest.mark.parametrize("length", [1, 7, 200])
def test_the_bias_equals_that_of_transformers(bidirectional: bool, length: int) -> None:
    config = their_config(32, 128)
    config.is_decoder = not bidirectional
    original = randomized(T5Attention(config, has_relative_attention_bias=True, layer_idx=0))
    ours = our_bias(original.relative_attention_bias.weight, length, bidirectional=bidirectional)
    assert torch.equal(ours, original.compute_bias(length, length))


@torch.no_grad()
@pytest.mark.parametrize("causal", [False, True])
def test_the_bias_equals_that_of_x_transformers_less_its_factor(causal: bool) -> None:
    original = randomized(RelativePositionBias(scale=2.0, causal=causal, heads=3))
    ours = our_bias(original.relative_attention_bias.weight, 150, bidirectional=not causal)
    torch.testing.assert_close(2.0 * ours[0], original(150, 150), rtol=1e-6, atol=0)


def pair() -> tuple[T5EncoderModel, Encoder]:
    """Return transformers' encoder and ours with its weights."""
    original = randomized(T5EncoderModel(their_config(attn_implementation="eager")))
    ours = shape(
        projection_bias="none",
        feed_forward_bias=False,
        activation="relu",
        embedding_norm=False,
        norm={"kind": "rms_norm", "placement": "pre", "eps": 1e-6},
        mechanism={"name": "t5", "num_buckets": 8, "max_distance": 12, "scale": "none"},
    )
    return original, imported_encoder(original, ours)


@torch.no_grad()
def test_attention_of_an_encoder_layer_equals(record_property: Record) -> None:
    original, encoder = pair()
    theirs = original.encoder.block[0].layer[0].SelfAttention
    hidden = torch.randn(2, 17, HIDDEN, generator=torch.Generator().manual_seed(4))
    context = encoder.begin(torch.ones(2, 17, dtype=torch.long))
    ours = encoder.layers[0].attention(hidden, hidden, context.prepared)
    gap = difference(ours, theirs(hidden)[0])
    record_property("difference", gap)
    assert gap <= TOLERANCE


@torch.no_grad()
def test_states_equal(record_property: Record) -> None:
    original, encoder = pair()
    gaps = []
    for length in LENGTHS:
        ids, visible, _ = given = sample(length)
        theirs = original(ids, attention_mask=given.attention_mask).last_hidden_state
        gaps.append(difference(encoder(ids, visible=visible), theirs, visible))
    record_property("difference", max(gaps))
    assert max(gaps) <= TOLERANCE
