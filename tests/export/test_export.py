"""Exported graphs: the same logits at lengths that were never traced, or a refusal; never silence."""

import json

import pytest
import torch

from posattn.encoder.config import EncoderConfig
from posattn.encoder.decoders import PlainDecoderConfig
from posattn.encoder.init import initialize
from posattn.encoder.model import MaskedLanguageModel
from posattn.errors import IncompatibleParts
from posattn.export import export_graph, load_model, save_graph, save_onnx
from posattn.export.graph import largest_difference, make_inputs
from posattn.mechanisms.rope import RotaryPositions

pytestmark = pytest.mark.compile
OPTIONS = {"alibi": {"variant": "halves"}}
EXPORTED = ["none", "learned", "rope", "alibi", "t5", "disentangled", "transformer_xl", "shaw"]
EXPORTED += ["cope", "fire"]  # tools/check_onnx.py has all the others too


def model(mechanism, **options):
    given = {"hidden_size": 16, "num_heads": 2, "num_layers": 1, "backend": "eager", **options}
    config = EncoderConfig.model_validate({**given, "mechanism": mechanism})
    made = MaskedLanguageModel(config, PlainDecoderConfig(), vocab_size=20)
    initialize(made, 0)
    return made.eval()


@pytest.mark.parametrize("name", EXPORTED)
def test_a_graph_is_right_at_other_lengths_than_it_was_traced_with(name):
    plain = model({"name": name, **OPTIONS.get(name, {})})
    graph = export_graph(plain).module()
    for batch, length in ((1, 8), (1, 12), (3, 5), (2, 40)):
        inputs = make_inputs(plain, batch, length)
        with torch.no_grad():
            expected = plain(inputs.ids, visible=inputs.visible).logits
            given = graph(**inputs.given())
        torch.testing.assert_close(
            given[inputs.visible], expected[inputs.visible], atol=1e-5, rtol=1e-5
        )


def test_a_part_that_looks_at_values_is_refused_by_name(monkeypatch):
    prepare = RotaryPositions.prepare

    def looking(self, geometry):
        if int(geometry.query_positions.max()) < 0:
            raise ValueError("positions must not be negative")
        return prepare(self, geometry)

    monkeypatch.setattr(RotaryPositions, "prepare", looking)
    with pytest.raises(IncompatibleParts, match="'rope' cannot be one graph for all lengths"):
        export_graph(model("rope"))


def test_a_fault_of_the_model_itself_is_no_refusal(monkeypatch):
    def broken(self, geometry):
        raise AttributeError("a plug-in's mistake")

    monkeypatch.setattr(RotaryPositions, "prepare", broken)
    with pytest.raises(AttributeError, match="a plug-in's mistake"):
        export_graph(model("rope"))


def test_a_full_disk_is_no_refusal(tmp_path, monkeypatch):
    def full(*arguments, **options):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("torch.onnx.export", full)
    with pytest.raises(OSError, match="No space left"):
        save_onnx(model("rope"), tmp_path / "model.onnx")


def test_what_the_runtime_lacks_is_refused_by_name(tmp_path, monkeypatch):
    def broken(*arguments, **options):
        raise RuntimeError("no such operator")

    monkeypatch.setattr("torch.onnx.export", broken)
    with pytest.raises(IncompatibleParts, match=r"'rope' cannot be an ONNX file.*no such operator"):
        save_onnx(model("rope"), tmp_path / "model.onnx")


def test_an_onnx_file_of_deberta_equals_the_model(tmp_path):
    plain = model({"name": "disentangled"}, segments=2)
    assert save_onnx(plain, tmp_path / "model.onnx") <= 1e-4
    assert (tmp_path / "model.onnx").stat().st_size > 0


def test_a_file_of_torch_export_equals_the_model(tmp_path):
    assert save_graph(model("rope"), tmp_path / "model.pt2") <= 1e-5


def test_a_graph_that_differs_is_refused():
    plain = model("rope")
    with pytest.raises(IncompatibleParts, match="differs from the model by"):
        largest_difference(plain, lambda inputs: plain(inputs.ids).logits + 1.0)
    answers = iter(range(10))
    with pytest.raises(IncompatibleParts, match="two answers to one input"):
        largest_difference(plain, lambda inputs: plain(inputs.ids).logits + next(answers))


def test_missing_packages_are_named_with_the_extra(tmp_path, monkeypatch):
    monkeypatch.setattr("posattn.export.onnx.PACKAGES", ("onnx", "no_such_package"))
    with pytest.raises(IncompatibleParts, match=r"needs no_such_package.*posattn\[export\]"):
        save_onnx(model("rope"), tmp_path / "model.onnx")


def test_memory_is_refused(tmp_path):
    recipe = tmp_path / "memory.yaml"
    mechanism = {"name": "transformer_xl", "memory_length": 8}
    recipe.write_text(
        f"extends: quick/base\ndata: {{order: streams}}\nencoder: {{mechanism: {json.dumps(mechanism)}}}"
    )
    with pytest.raises(IncompatibleParts, match="remembers 8 states"):
        load_model(str(recipe))
