"""Where weights come from: safetensors, shards, safe pickles, the hub; and what is refused."""

import json
import pickle
from pathlib import Path
from typing import Any

import pytest
import torch

from posattn.checkpoints import from_pretrained
from posattn.checkpoints.source import open_source
from posattn.errors import CheckpointError

from .originals import KINDS, made


@pytest.fixture(scope="module")
def bert() -> Any:
    return made(KINDS["bert"])


@pytest.fixture
def folder(bert: Any, tmp_path: Path) -> Path:
    bert.save_pretrained(tmp_path / "bert")
    return tmp_path / "bert"


def test_shards_are_put_together_and_their_index_is_checked(bert: Any, tmp_path: Path) -> None:
    bert.save_pretrained(tmp_path / "shards", max_shard_size="20KB")
    bert.save_pretrained(tmp_path / "whole")
    source = open_source(tmp_path / "shards")
    assert len(source.weight_files) > 1
    assert len(source.digests()) == len(source.weight_files) + 1
    whole = open_source(tmp_path / "whole").tensors()
    parts = source.tensors()
    assert whole.keys() == parts.keys()
    assert all(torch.equal(whole[name], parts[name]) for name in whole)
    index = tmp_path / "shards" / "model.safetensors.index.json"
    content = json.loads(index.read_text())
    content["weight_map"]["extra"] = source.weight_files[0].name
    index.write_text(json.dumps(content))
    with pytest.raises(CheckpointError, match="no shard holds: \\['extra'\\]"):
        open_source(tmp_path / "shards").tensors()
    source.weight_files[0].unlink()
    with pytest.raises(CheckpointError, match="shards that are not there"):
        open_source(tmp_path / "shards").tensors()


def test_an_index_does_not_lead_out_of_its_folder(folder: Path) -> None:
    (folder / "model.safetensors").unlink()
    index = {"weight_map": {"a": "../other.safetensors"}}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))
    with pytest.raises(CheckpointError, match="outside its folder"):
        open_source(folder).tensors()


def test_a_pickle_is_loaded_safely_where_there_is_nothing_else(bert: Any, folder: Path) -> None:
    safe = open_source(folder).tensors()
    (folder / "model.safetensors").unlink()
    torch.save(bert.state_dict(), folder / "pytorch_model.bin")
    pickled = open_source(folder).tensors()
    assert all(torch.equal(safe[name], pickled[name]) for name in safe)
    found = from_pretrained(folder)
    assert {entry.fate for entry in found.report.entries} == {"mapped", "copy"}


class Trap:
    """Writes a file when it is unpickled."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[Any, ...]:
        return Path.touch, (self.path,)


def test_a_pickle_that_would_run_code_is_refused_and_runs_none(folder: Path) -> None:
    (folder / "model.safetensors").unlink()
    mark = folder.parent / "executed"
    (folder / "pytorch_model.bin").write_bytes(pickle.dumps({"a": Trap(mark)}, protocol=2))
    with pytest.raises(CheckpointError, match="cannot be loaded safely"):
        open_source(folder).tensors()
    torch.save({"a": Trap(mark)}, folder / "pytorch_model.bin")
    with pytest.raises(CheckpointError, match="cannot be loaded safely"):
        open_source(folder).tensors()
    assert not mark.exists()
    torch.save({"a": [1, 2]}, folder / "pytorch_model.bin")
    with pytest.raises(CheckpointError, match="something else than tensors"):
        open_source(folder).tensors()


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda folder: (folder / "config.json").unlink(), "no config.json"),
        (lambda folder: (folder / "config.json").write_text("{"), "not readable as JSON"),
        (lambda folder: (folder / "model.safetensors").unlink(), "holds no weights"),
        (lambda folder: (folder / "model.safetensors").write_bytes(b"x"), "not a readable"),
        (
            lambda folder: (folder / "config.json").write_text('{"model_type": "gpt2"}'),
            "'gpt2', which no checkpoint family takes .*bert.*deberta-v2",
        ),
    ],
)
def test_a_damaged_or_foreign_folder_is_one_message(
    damage: Any, message: str, folder: Path
) -> None:
    damage(folder)
    with pytest.raises(CheckpointError, match=message):
        from_pretrained(folder)


def test_a_file_is_no_source(folder: Path) -> None:
    with pytest.raises(CheckpointError, match="is a file; name the folder"):
        from_pretrained(folder / "config.json")


def test_a_name_that_the_hub_does_not_give_says_what_to_do() -> None:
    with pytest.raises(CheckpointError, match="nobody/nothing' is neither a folder here") as caught:
        from_pretrained("nobody/nothing")
    assert "copy the model's files into a folder" in str(caught.value)


def test_a_hub_name_downloads_no_code_and_pickles_only_in_need(
    folder: Path, bert: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[list[str]] = []

    def snapshot_download(name: str, allow_patterns: list[str]) -> str:
        assert name == "someone/bert"
        asked.append(allow_patterns)
        return str(folder)

    monkeypatch.setattr("huggingface_hub.snapshot_download", snapshot_download)
    found = from_pretrained("someone/bert")
    assert (found.report.source, found.recipe.name) == ("someone/bert", "bert")
    assert asked == [["*.json", "*.txt", "*.yaml", "*.safetensors"]]
    (folder / "model.safetensors").unlink()
    torch.save(bert.state_dict(), folder / "pytorch_model.bin")
    from_pretrained("someone/bert")
    assert asked[-1][-1] == "pytorch_model*.bin"
    assert not any(pattern.endswith(".py") for patterns in asked for pattern in patterns)
