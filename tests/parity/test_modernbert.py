"""ModernBERT: norms before blocks, half layout, a base for local and one for global layers, geglu."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor
from transformers import ModernBertConfig, ModernBertForMaskedLM

from posattn.encoder.config import EncoderConfig
from posattn.encoder.decoder import PlainDecoderConfig
from posattn.encoder.heads import HeadConfig
from posattn.encoder.model import MaskedLanguageModel

from .originals import SHAPE, TOLERANCE, VOCAB, difference, imported, randomized, sample

Record = Callable[[str, object], None]
LAYERS = 5  # global, local, local, global, local
LOCAL = [1, 2, 4]
LENGTHS = [1, 6, 11, 24]


def ours(window: int) -> EncoderConfig:
    """Return our configuration of this architecture."""
    return EncoderConfig(
        hidden_size=SHAPE["hidden_size"],
        num_layers=LAYERS,
        num_heads=SHAPE["num_attention_heads"],
        intermediate_size=SHAPE["intermediate_size"],
        activation="geglu",
        norm={"placement": "pre", "eps": 1e-5, "before_first": False, "bias": False},
        projection_bias="none",
        feed_forward_bias=False,
        mechanism=[
            {"name": "rope", "base": 160000.0, "layers": {"every": 3}},
            {"name": "rope", "base": 10000.0, "layers": LOCAL},
        ],
        window={"size": window, "layers": LOCAL},
    )


def pair(window: int) -> tuple[ModernBertForMaskedLM, MaskedLanguageModel]:
    """Return transformers' model and ours with its weights."""
    config = ModernBertConfig(
        **(SHAPE | {"num_hidden_layers": LAYERS}),
        local_attention=window,
        max_position_embeddings=64,
        pad_token_id=0,
        bos_token_id=1,
        eos_token_id=2,
        cls_token_id=1,
        sep_token_id=2,
    )
    original = randomized(ModernBertForMaskedLM(config))
    return original, imported(original, ours(window))


@torch.no_grad()
@pytest.mark.parametrize("window", [2, 6, 7, 128], ids=lambda size: f"window {size}")
def test_logits_and_states_equal(window: int, record_property: Record) -> None:
    original, model = pair(window)
    gaps = []
    for length in LENGTHS:
        ids, visible, _ = given = sample(length)
        theirs = original(ids, attention_mask=given.attention_mask).logits
        states = original.model(ids, attention_mask=given.attention_mask).last_hidden_state
        output = model(ids, visible=visible)
        gaps.append(difference(output.logits, theirs, visible))
        gaps.append(difference(output.hidden, states, visible))
    record_property("difference", max(gaps))
    assert max(gaps) <= TOLERANCE


@torch.no_grad()
def test_the_window_reaches_half_its_size_to_each_side() -> None:
    _, model = pair(window=6)
    seen = []

    def record(call: object, content_term: str) -> None:
        seen.append(call.visibility.pairs)

    model(sample(11).ids[:1], observer=record)
    assert [pairs is None for pairs in seen] == [True, False, False, True, False]
    row = seen[1][0, 0, 5]
    assert row.nonzero().flatten().tolist() == [2, 3, 4, 5, 6, 7, 8]


@torch.no_grad()
def test_the_switch_for_the_first_norm_and_both_bases_matter() -> None:
    original, model = pair(window=6)
    ids = sample(11).ids[:1]
    theirs = original(ids).logits
    tensors = model.state_dict()
    one_base = ours(6).model_dump() | {"mechanism": [{"name": "rope", "base": 10000.0}]}
    assert difference(with_weights(one_base, tensors)(ids).logits, theirs) > 1e-3
    norm = "encoder.layers.0.attention_norm.weight"
    assert norm not in tensors
    with_norm = ours(6).model_dump() | {"norm": {"placement": "pre", "eps": 1e-5, "bias": False}}
    normed = with_weights(with_norm, tensors | {norm: torch.ones(24)})
    assert difference(normed(ids).logits, theirs) > 1e-3


def with_weights(config: dict[str, Any], tensors: dict[str, Tensor]) -> MaskedLanguageModel:
    """Return a model of another config with these weights."""
    head = HeadConfig(bias=False)
    made = MaskedLanguageModel(
        EncoderConfig.model_validate(config), PlainDecoderConfig(), VOCAB, head
    )
    made.load_state_dict(tensors, strict=True)
    return made.eval()
