"""`train.start`: weights of a folder, by name, with an account and without surprises."""

from pathlib import Path

import pytest
import torch
from torch import nn

from posattn.errors import CheckpointError
from posattn.recipe.check import check_recipe
from posattn.recipe.run import train_recipe
from posattn.recipe.schema import load_recipe
from posattn.training.config import StartConfig, TrainConfig
from posattn.training.durable import read_json
from posattn.training.start import begin_from, check_start
from posattn.training.weights import save_weights

TINY = [
    *("encoder.hidden_size=16", "encoder.num_layers=1", "encoder.num_heads=2"),
    *("data.corpus=pydoc", "data.max_length=16", "train.steps=2", "train.batch_size=2"),
    *("data.tokenizer={name: characters, vocab_size: 64}", "train.evaluation_tokens=50"),
]


def layers(width: int = 3) -> nn.Module:
    return nn.ModuleDict({"a": nn.Linear(2, width), "b": nn.Linear(2, 2)})


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    save_weights(layers(), tmp_path / "model.safetensors")
    return tmp_path


def test_a_bare_folder_is_the_section_with_nothing_accepted():
    assert TrainConfig.model_validate({"start": "x"}).start == StartConfig(path="x")
    assert TrainConfig().start is None


def test_weights_are_taken_by_name_and_the_file_is_recorded(folder: Path) -> None:
    model = layers()
    record = begin_from(model, StartConfig(path=str(folder)), None)
    again = layers()
    assert begin_from(again, StartConfig(path=str(folder)), None) == record
    assert all(
        torch.equal(one, other)
        for one, other in zip(model.parameters(), again.parameters(), strict=True)
    )
    assert len(record.sha256) == 64
    assert (record.new, record.unused) == ((), ())


def test_another_shape_is_new_and_unused_and_both_must_be_accepted(folder: Path) -> None:
    path = str(folder)
    with pytest.raises(CheckpointError, match=r"new in the model: a\.bias, a\.weight; unused"):
        check_start(layers(width=4), StartConfig(path=path))
    with pytest.raises(CheckpointError, match="new in the model: none; unused of the file: a"):
        check_start(layers(width=4), StartConfig(path=path, accept_new=("a.*",)))
    start = StartConfig(path=path, accept_new=("a.*",), accept_unused=("a.*",))
    model = layers(width=4)
    before = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    record = begin_from(model, start, None)
    assert record.new == record.unused == ("a.bias", "a.weight")
    assert torch.equal(model.state_dict()["a.weight"], before["a.weight"])
    assert not torch.equal(model.state_dict()["b.weight"], before["b.weight"])


def test_a_folder_without_weights_points_to_the_one_with(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    with pytest.raises(CheckpointError, match="holds no model"):
        check_start(layers(), StartConfig(path=str(tmp_path / "run")))
    (tmp_path / "run" / "final").mkdir()
    save_weights(layers(), tmp_path / "run" / "final" / "model.safetensors")
    with pytest.raises(CheckpointError, match=r"did you mean .*final"):
        check_start(layers(), StartConfig(path=str(tmp_path / "run")))


def test_a_run_goes_on_from_another_runs_final_weights(tmp_path: Path) -> None:
    first = train_recipe(load_recipe("rope", TINY), tmp_path / "first")
    recipe = load_recipe("rope", [*TINY, f"train.start={first.folder / 'final'}"])
    assert recipe.train.start is not None
    check_recipe(recipe)
    second = train_recipe(recipe, tmp_path / "second")
    described = read_json(second.folder / "parameters.json")
    assert described["start"]["path"] == str(first.folder / "final")
    started = described["tensors"]["encoder.tokens.weight"]["digest"]
    assert (
        started
        != read_json(first.folder / "parameters.json")["tensors"]["encoder.tokens.weight"]["digest"]
    )
    third = train_recipe(
        load_recipe("alibi", [*TINY, f"train.start={first.folder / 'final'}"]), tmp_path / "third"
    )
    tensors = read_json(third.folder / "parameters.json")["tensors"]
    assert tensors["encoder.tokens.weight"]["digest"] == started  # shared names start equal


def test_another_tokenizer_than_the_weights_was_made_with_is_refused(tmp_path: Path) -> None:
    first = train_recipe(load_recipe("rope", TINY), tmp_path / "first")
    given = [*TINY, "data.tokenizer.normalization=nfkc", f"train.start={first.folder / 'final'}"]
    with pytest.raises(CheckpointError, match="belong to the tokenizer"):
        train_recipe(load_recipe("rope", given), tmp_path / "second")
    assert not (tmp_path / "second").exists()


def test_a_resumed_run_does_not_look_at_its_start_again(tmp_path: Path) -> None:
    first = train_recipe(load_recipe("rope", TINY), tmp_path / "first")
    given = [*TINY, f"train.start={first.folder / 'final'}", "train.checkpoint_every=1"]
    recipe = load_recipe("rope", given)

    def stop(progress: object) -> None:
        if getattr(progress, "step", 0) == 1:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        train_recipe(recipe, tmp_path / "second", progress=stop)
    (first.folder / "final" / "model.safetensors").unlink()
    assert train_recipe(recipe, tmp_path / "second", resume=True).state == "finished"


def test_a_relative_start_is_meant_from_the_recipes_own_folder(tmp_path: Path) -> None:
    for text in ("start: up/final", "start: {path: up/final}"):
        path = tmp_path / "mine.yaml"
        path.write_text(f"extends: quick/rope\ntrain: {{{text}}}\n")
        start = load_recipe(path).train.start
        assert start is not None
        assert start.path == str(tmp_path / "up" / "final")
