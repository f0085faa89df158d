"""Compiled models give what plain ones give, for every mechanism, at lengths they were not traced with.

Run without the shape hook, which Dynamo cannot look through: `tools/check compile`.
"""

import pytest
import torch
from torch.testing import assert_close

import posattn
from posattn.encoder.config import EncoderConfig
from posattn.encoder.decoders import DecoderConfig, MaskDecoderConfig, PlainDecoderConfig
from posattn.encoder.init import initialize
from posattn.encoder.model import MaskedLanguageModel

pytestmark = pytest.mark.compile


OPTIONS = {"xpos": {"name": "xpos", "causal": True}}  # refused by its bare name


def build(mechanism: str, decoder: DecoderConfig) -> MaskedLanguageModel:
    config = EncoderConfig.model_validate(
        {
            "hidden_size": 16,
            "num_heads": 2,
            "num_layers": 1,
            "mechanism": OPTIONS.get(mechanism, mechanism),
            "hidden_dropout": 0.0,
            "attention_dropout": 0.0,
        }
    )
    model = MaskedLanguageModel(config, decoder, vocab_size=20)
    initialize(model, seed=0)
    return model


def assert_compiled_equals_plain(mechanism: str, decoder: DecoderConfig) -> None:
    torch.compiler.reset()
    plain, traced = build(mechanism, decoder), build(mechanism, decoder)
    compiled = torch.compile(traced, backend="eager")
    for length in (7, 12):
        ids = torch.arange(2 * length).view(2, length) % 20
        visible = torch.ones(2, length, dtype=torch.bool)
        visible[1, -2:] = False
        torch.manual_seed(length)  # mechanisms that draw positions in training draw the same ones
        expected = plain(ids, visible=visible).logits[visible]
        torch.manual_seed(length)
        given = compiled(ids, visible=visible).logits[visible]
        assert_close(given, expected)
        expected.square().sum().backward()
        given.square().sum().backward()
    gradients = dict(traced.named_parameters())
    for name, parameter in plain.named_parameters():
        assert_close(gradients[name].grad, parameter.grad)


@pytest.mark.parametrize("mechanism", posattn.mechanisms.names())
def test_a_compiled_model_gives_and_learns_what_the_plain_one_does(mechanism):
    assert_compiled_equals_plain(mechanism, PlainDecoderConfig())


def test_a_compiled_mask_decoder_gives_and_learns_what_the_plain_one_does():
    assert_compiled_equals_plain("disentangled", MaskDecoderConfig())


def test_compiled_flex_attention_equals_eager_under_padding_and_a_window():
    torch.compiler.reset()
    models = []
    for backend in ("eager", "flex"):
        config = EncoderConfig.model_validate(
            {
                "hidden_size": 32,
                "num_heads": 2,
                "num_layers": 1,
                "mechanism": "disentangled",
                "window": {"size": 8},
                "backend": backend,
            }
        )
        model = MaskedLanguageModel(config, PlainDecoderConfig(), vocab_size=20).eval()
        initialize(model, seed=0)
        models.append(model)
    ids = torch.arange(2 * 21).view(2, 21) % 20
    visible = torch.arange(21)[None] < torch.tensor([[21], [13]])
    with torch.no_grad():
        plain, flex = (model(ids, visible=visible).logits[visible] for model in models)
    assert_close(flex, plain, atol=1e-5, rtol=1e-5)
