"""Compiled models give what plain ones give, for every mechanism, at lengths they were not traced with.

Run without the shape hook, which Dynamo cannot look through: `tools/check compile`.
"""

import json

import pytest
import torch
from torch.testing import assert_close

import posattn
from posattn.encoder.config import EncoderConfig
from posattn.encoder.decoders import DecoderConfig, MaskDecoderConfig, PlainDecoderConfig
from posattn.encoder.init import initialize
from posattn.encoder.model import MaskedLanguageModel
from posattn.recipe.run import train_recipe
from posattn.recipe.schema import Recipe

pytestmark = pytest.mark.compile


DRAW = ("cape", "randomized")  # positions, in training
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


class Counted:
    """A compiler that leaves graphs as they are and counts them."""

    def __init__(self) -> None:
        self.graphs = 0

    def __call__(self, graph, inputs):
        self.graphs += 1
        return graph


def batch(length: int) -> tuple[torch.Tensor, dict[str, torch.Tensor]]:
    ids = torch.arange(3 * length).view(3, length) % 20
    visible = torch.ones(3, length, dtype=torch.bool)
    visible[1, -2:] = False
    return ids, {"visible": visible, "selected": (ids % 4 == 0) & visible}


def assert_compiled_equals_plain(
    mechanism: str, decoder: DecoderConfig, training: bool = True
) -> int:
    """Compare outputs, and gradients in training, over lengths; return the number of graphs."""
    torch.compiler.reset()
    plain = build(mechanism, decoder).train(training)
    traced = build(mechanism, decoder).train(training)
    counted = Counted()
    traced.compile(dynamic=True, backend=counted)
    for length in (8, 13, 24):
        ids, inputs = batch(length)
        with torch.set_grad_enabled(training):
            torch.manual_seed(
                length
            )  # mechanisms that draw positions in training draw the same ones
            expected = plain(ids, **inputs).logits
            torch.manual_seed(length)
            given = traced(ids, **inputs).logits
        assert_close(given, expected)
        if training:
            expected.square().sum().backward()
            given.square().sum().backward()
    gradients = dict(traced.named_parameters())
    for name, parameter in plain.named_parameters():
        assert_close(gradients[name].grad, parameter.grad)
    return counted.graphs


@pytest.mark.parametrize("mechanism", posattn.mechanisms.names())
def test_a_compiled_model_gives_and_learns_what_the_plain_one_does_with_two_graphs(mechanism):
    graphs = assert_compiled_equals_plain(mechanism, PlainDecoderConfig())
    assert graphs <= 2


@pytest.mark.parametrize("mechanism", DRAW)
def test_what_draws_positions_in_training_has_two_graphs_in_evaluation(mechanism):
    assert assert_compiled_equals_plain(mechanism, PlainDecoderConfig(), training=False) <= 2


def test_a_compiled_mask_decoder_gives_and_learns_what_the_plain_one_does():
    assert assert_compiled_equals_plain("disentangled", MaskDecoderConfig()) <= 2


def test_a_compiled_run_learns_what_a_plain_one_does_and_records_its_graphs(tmp_path, monkeypatch):
    monkeypatch.setattr("posattn.training.compiling.BACKEND", "eager")
    small = {
        "encoder": {"hidden_size": 16, "num_heads": 2, "num_layers": 1, "mechanism": "rope"},
        "data": {
            "corpus": {"name": "pydoc"},
            "tokenizer": {"name": "characters", "vocab_size": 50},
            "max_length": 16,
        },
        "train": {"steps": 3, "batch_size": 4, "evaluation_tokens": 200},
    }
    losses = []
    for compiled in (False, True):
        torch.compiler.reset()
        train = {**small["train"], "compile": compiled}
        recipe = Recipe.model_validate({"name": "tiny", **small, "train": train})
        result = train_recipe(recipe, tmp_path / str(compiled))
        lines = (result.folder / "metrics.jsonl").read_text().splitlines()
        losses.append([json.loads(line)["loss"] for line in lines])
        graphs = json.loads((result.folder / "status.json").read_text())["graphs"]
        assert (graphs or 0) > 0 if compiled else graphs is None
    assert losses[1] == pytest.approx(losses[0], rel=1e-5)
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
