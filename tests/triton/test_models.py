"""Whole models on the triton backend, in its interpreter, are what they are on eager attention."""

from typing import Any

import pytest
import torch
from torch import Tensor

from posattn.encoder.config import EncoderConfig
from posattn.encoder.decoders import DecoderConfig, MaskDecoderConfig, PlainDecoderConfig
from posattn.encoder.init import initialize
from posattn.encoder.model import MaskedLanguageModel

MECHANISMS: dict[str, dict[str, Any]] = {
    "disentangled": {"buckets": {"name": "log", "num_buckets": 4, "max_distance": 6}, "p2p": True},
    "transformer_xl": {},
    "t5": {"num_buckets": 8, "max_distance": 10},
    "kerple": {},
}


def build(mechanism: str, backend: str, decoder: DecoderConfig) -> MaskedLanguageModel:
    shape = {"hidden_size": 16, "num_heads": 2, "num_layers": 1, "attention_dropout": 0.0}
    parts = {"mechanism": {"name": mechanism, **MECHANISMS[mechanism]}, "hidden_dropout": 0.0}
    config = EncoderConfig.model_validate({**shape, **parts, "backend": backend})
    model = MaskedLanguageModel(config, decoder, vocab_size=20)
    initialize(model, seed=0)
    return model


def results(model: MaskedLanguageModel, **inputs: Tensor) -> tuple[Tensor, dict[str, Tensor]]:
    ids = torch.arange(18).view(1, 18) % 20
    logits = model(ids, **inputs).logits
    logits.square().mean().backward()
    named = model.named_parameters()
    return logits, {name: one.grad for name, one in named if one.grad is not None}


def assert_as_eager(mechanism: str, decoder: DecoderConfig, **inputs: Tensor) -> None:
    found, expected = (
        results(build(mechanism, backend, decoder), **inputs) for backend in ("triton", "eager")
    )
    torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_packed_texts_learn_what_they_learn_on_eager(mechanism: str) -> None:
    assert_as_eager(mechanism, PlainDecoderConfig(), documents=torch.tensor([[0] * 11 + [1] * 7]))


def test_the_mask_decoder_asks_for_some_tokens_of_all() -> None:
    selected = torch.arange(18)[None] % 5 == 1
    assert_as_eager("disentangled", MaskDecoderConfig(), selected=selected)
