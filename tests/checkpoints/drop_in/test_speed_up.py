"""`speed_up`: the same model with other attention; what it keeps, what it refuses, and the way back."""

import copy
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn
from transformers import AutoModel, BertConfig, BertModel

import posattn
from posattn.checkpoints.drop_in import SpeedUp
from posattn.errors import IncompatibleParts

from .models import KINDS, first_output, made, tokens

BACKENDS = ["eager", "sdpa", "auto"]


class Extractor(nn.Module):
    """A larger model that holds an encoder, as entity extractors do."""

    def __init__(self, encoder: nn.Module) -> None:
        super().__init__()
        self.backbone = nn.ModuleDict({"words": encoder})
        self.scores = nn.Linear(32, 2)

    def forward(self, **given: Any) -> tuple[torch.Tensor]:
        return (self.scores(self.backbone["words"](**given)[0]),)


def quick(model: nn.Module, **options: Any) -> SpeedUp:
    return posattn.speed_up(model, quiet=True, **options)


@pytest.mark.parametrize("kind", KINDS)
def test_outputs_of_real_tokens_are_equal_at_any_length(kind: str) -> None:
    model = made(kind)
    expected = {length: first_output(model, length) for length in (7, 37, 64)}
    quick(model)
    for length, before in expected.items():
        assert torch.allclose(first_output(model, length), before, atol=1e-5)


@pytest.mark.parametrize("backend", BACKENDS)
def test_every_backend_gives_the_same(backend: str) -> None:
    model = made("v3")
    before = first_output(model)
    assert quick(model, backend=backend).backend == backend
    assert torch.allclose(first_output(model), before, atol=1e-5)


def test_it_prints_what_it_chose(capsys: pytest.CaptureFixture[str]) -> None:
    report = posattn.speed_up(made("v3"), backend="sdpa")
    shown = capsys.readouterr().out
    assert shown == f"{report}\n"
    assert "2 layers of DeBERTa v2/v3 now runs through backend 'sdpa'" in shown
    assert report.largest_difference < 1e-5
    assert quick(made("v1")).chosen


@pytest.mark.parametrize("kind", ["v1", "v3"])
def test_gradients_of_all_weights_are_equal(kind: str) -> None:
    model = made(kind)
    twin = copy.deepcopy(model)
    quick(twin)
    real = tokens()["attention_mask"].bool()
    for each in (model, twin):
        each(**tokens())[0][real].square().sum().backward()
    theirs = dict(model.named_parameters())
    for name, parameter in twin.named_parameters():
        assert parameter.grad is not None, name
        assert torch.allclose(parameter.grad, theirs[name].grad, atol=1e-4, rtol=1e-4), name


def test_dropout_acts_in_training_only_and_training_changes_the_outputs() -> None:
    model = made("v3")
    quick(model)
    model.train()
    torch.manual_seed(0)
    assert not torch.equal(first_output(model), first_output(model))
    model.eval()
    before = first_output(model)
    assert torch.equal(first_output(model), before)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    model(**tokens())[0].square().sum().backward()
    optimizer.step()
    after = first_output(model)
    assert not torch.allclose(after, before, atol=1e-3)
    posattn.slow_down(model)
    assert torch.allclose(first_output(model), after, atol=1e-5)


def test_the_share_of_attention_that_is_dropped_is_the_models_own() -> None:
    model = made("v3", hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0)
    quick(model)
    expected = first_output(model)
    model.train()
    assert torch.allclose(first_output(model), expected, atol=1e-5)
    for module in model.modules():
        if hasattr(module, "pos_att_type"):
            module.dropout.p = 0.5
    assert not torch.allclose(first_output(model), expected, atol=1e-3)


def test_names_of_weights_saving_and_loading_are_as_before(tmp_path: Path) -> None:
    model = made("v3")
    names, before = list(model.state_dict()), first_output(model)
    quick(model)
    assert list(model.state_dict()) == names
    assert len(list(model.modules())) == len(list(made("v3").modules()))
    model.save_pretrained(tmp_path)
    again = AutoModel.from_pretrained(tmp_path)
    assert "posattn" not in type(again.encoder).__module__
    quick(again)
    assert torch.allclose(first_output(again), before, atol=1e-5)


@pytest.mark.parametrize("kind", ["v1", "v3"])
def test_attention_maps_are_those_of_transformers(kind: str) -> None:
    model = made(kind)
    expected = model(**tokens(), output_attentions=True)
    quick(model)
    found = model(**tokens(), output_attentions=True)
    for one, other in zip(found.attentions, expected.attentions, strict=True):
        assert torch.equal(one, other)


def test_a_mask_of_pairs_is_honoured() -> None:
    model = made("v3")
    hidden = torch.randn(1, 9, 32)
    pairs = torch.ones(1, 9, 9).tril()
    with torch.no_grad():
        expected = model.encoder(hidden, pairs)[0]
        quick(model)
        assert torch.equal(model.encoder(hidden, pairs)[0], expected)


def test_an_encoder_inside_a_larger_model_is_found() -> None:
    model = Extractor(made("v3"))
    before = first_output(model)
    assert quick(model).num_layers == 2
    assert torch.allclose(first_output(model), before, atol=1e-5)


def test_copies_and_second_calls_work_on_the_right_weights() -> None:
    model = made("v3")
    quick(model)
    twin = copy.deepcopy(model)
    with torch.no_grad():
        twin.encoder.rel_embeddings.weight.neg_()
    changed = first_output(twin)
    assert not torch.allclose(changed, first_output(model), atol=1e-3)
    quick(twin, backend="eager")
    assert torch.allclose(first_output(twin), changed, atol=1e-5)
    posattn.slow_down(twin)
    assert torch.allclose(first_output(twin), changed, atol=1e-5)


def test_a_part_that_is_exchanged_later_is_used() -> None:
    for kind, change in {
        "v3": lambda model: setattr(model.encoder, "rel_embeddings", nn.Embedding(16, 32)),
        "v1": lambda model: setattr(
            model.encoder.layer[0].attention.self, "pos_proj", nn.Linear(32, 32, bias=False)
        ),
    }.items():
        model = made(kind)
        before = first_output(model)
        quick(model)
        change(model)
        found = first_output(model)
        assert not torch.allclose(found, before, atol=1e-3)
        posattn.slow_down(model)
        assert torch.allclose(first_output(model), found, atol=1e-5)


def test_slow_down_gives_back_transformers_own_code() -> None:
    model = made("v3")
    classes = [type(module) for module in model.modules()]
    quick(model)
    assert [type(module) for module in model.modules()] != classes
    assert posattn.slow_down(model) == 2
    assert [type(module) for module in model.modules()] == classes
    assert posattn.slow_down(model) == 0


def test_distances_past_the_table_follow_transformers_or_microsoft() -> None:
    model = made("v3")
    before = first_output(model, 64)
    quick(model, beyond="held")
    assert not torch.allclose(first_output(model, 64), before, atol=1e-3)
    assert first_output(model, 20).shape[0] == 2 * 20 - 6


def test_what_it_cannot_do_is_refused_and_left_untouched() -> None:
    class Mine(type(made("v3").encoder)):  # type: ignore[misc]
        pass

    replaced, talking, subclass = made("v3"), made("v1", talking_head=True), made("v3")
    layer = replaced.encoder.layer[1].attention.self
    layer.forward = layer.forward
    subclass.encoder.__class__ = Mine
    bert = BertModel(BertConfig(vocab_size=9, hidden_size=8, num_attention_heads=2))
    for model, reason in {
        replaced: r"encoder: layer 1: another tool has replaced the forward",
        talking: "layer 0: talking_head mixes the logits of heads",
        subclass: "it is a subclass of transformers' encoder",
        bert: "holds no DeBERTa encoder .* attention is BertAttention, BertSelfAttention",
        made("v3").to("meta"): "weights are on the meta device",
        nn.Sequential(layer): "it lies in no DebertaV2Encoder",
    }.items():
        classes = [type(module) for module in model.modules()]
        with pytest.raises(IncompatibleParts, match=reason):
            quick(model)
        assert [type(module) for module in model.modules()] == classes


def test_a_library_that_computes_something_else_is_noticed_and_left_untouched() -> None:
    model = made("v3")
    attention = type(model.encoder.layer[0].attention.self)
    original = attention.disentangled_attention_bias
    classes = [type(module) for module in model.modules()]
    try:
        attention.disentangled_attention_bias = lambda *given: 2 * original(*given)
        with pytest.raises(IncompatibleParts, match="this version of transformers computes"):
            quick(model)
    finally:
        attention.disentangled_attention_bias = original
    assert [type(module) for module in model.modules()] == classes
