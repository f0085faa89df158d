"""A checkpoint as it lies in a folder: config.json, weights, tokenizer files. Nothing in it is executed.

Weights are read from safetensors, whole or in shards; from pickles only where there is nothing else,
and then with torch's `weights_only`, which makes tensors and no other objects.
"""

import hashlib
import json
import pickle
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from posattn.errors import CheckpointError
from posattn.training.weights import read_tensors

_SAFE, _PICKLED = "model.safetensors", "pytorch_model.bin"
_WANTED = ["*.json", "*.txt", "*.yaml", "*.safetensors"]


@dataclass(frozen=True)
class Source:
    """A folder with a config.json; `name` is what the user called it."""

    name: str
    folder: Path
    weights_folder: Path  # the same, but for sentence encoders that keep the model below it

    @property
    def title(self) -> str:
        """The last part of its name, for people."""
        is_local = Path(self.name).expanduser().exists()
        return self.folder.resolve().name if is_local else self.name.rpartition("/")[2]

    @cached_property
    def config(self) -> dict[str, Any]:
        """The contents of config.json."""
        found = self.optional_json(self.weights_folder / "config.json")
        if not isinstance(found, dict):
            raise CheckpointError(
                f"{self.name}: there is no config.json in {self.weights_folder}, which says what the "
                "weights are; give the folder that a model was saved in"
            )
        return found

    def optional_json(self, path: Path) -> Any:
        """Return what a JSON file holds, or None if there is no such file."""
        if not path.is_file():
            return None
        try:
            return json.loads(path.read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            raise CheckpointError(f"{path} is not readable as JSON: {error}") from error

    @cached_property
    def weight_files(self) -> tuple[Path, ...]:
        """The files that hold the weights."""
        folder = self.weights_folder
        for name in (_SAFE, _PICKLED):
            if (folder / name).is_file():
                return (folder / name,)
            if (folder / f"{name}.index.json").is_file():
                return self._shards(folder / f"{name}.index.json")
        raise CheckpointError(
            f"{self.name}: {folder} holds no weights (looked for {_SAFE}, {_PICKLED}, and the index "
            "files of shards)"
        )

    def tensors(self) -> dict[str, Tensor]:
        """Return all stored tensors by name."""
        found: dict[str, Tensor] = {}
        for path in self.weight_files:
            part = read_tensors(path) if path.suffix == ".safetensors" else _unpickled(path)
            if twice := sorted(part.keys() & found.keys()):
                raise CheckpointError(f"{path} holds {twice}, which another shard holds as well")
            found |= part
        self._check_index(found)
        return found

    def digests(self) -> dict[str, str]:
        """Return the SHA-256 of config.json and of each file of weights."""
        digests = {}
        for path in (self.weights_folder / "config.json", *self.weight_files):
            with path.open("rb") as file:
                digests[path.name] = hashlib.file_digest(file, "sha256").hexdigest()
        return digests

    def _shards(self, index: Path) -> tuple[Path, ...]:
        names = sorted(set(self._weight_map(index).values()))
        if strange := [name for name in names if Path(name).name != name]:
            raise CheckpointError(f"{index} names shards outside its folder: {strange}")
        if missing := [name for name in names if not (index.parent / name).is_file()]:
            raise CheckpointError(f"{index} names shards that are not there: {missing}")
        return tuple(index.parent / name for name in names)

    def _weight_map(self, index: Path) -> dict[str, str]:
        found = self.optional_json(index)
        if not isinstance(found, dict) or not isinstance(found.get("weight_map"), dict):
            raise CheckpointError(f"{index} has no weight_map")
        return {str(name): str(file) for name, file in found["weight_map"].items()}

    def _check_index(self, found: dict[str, Tensor]) -> None:
        if len(self.weight_files) < 2:
            return
        for name in (_SAFE, _PICKLED):
            index = self.weights_folder / f"{name}.index.json"
            if index.is_file() and (
                missing := sorted(self._weight_map(index).keys() - found.keys())
            ):
                raise CheckpointError(f"{index} names tensors that no shard holds: {missing[:8]}")


def open_source(name: str | Path) -> Source:
    """Return the checkpoint in a local folder, or of the Hugging Face hub if there is no such folder."""
    folder = Path(name).expanduser()
    if not folder.exists():
        folder = _from_hub(str(name))
    if not folder.is_dir():
        raise CheckpointError(
            f"{name} is a file; name the folder that holds config.json and weights"
        )
    inner = folder / "0_Transformer"
    holds_model = (folder / "config.json").is_file() or not (inner / "config.json").is_file()
    return Source(str(name), folder, folder if holds_model else inner)


def _from_hub(name: str) -> Path:
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import HfHubHTTPError, HFValidationError, LocalEntryNotFoundError

    try:
        folder = Path(snapshot_download(name, allow_patterns=_WANTED))
        if not any(folder.rglob("*.safetensors")):
            folder = Path(snapshot_download(name, allow_patterns=[*_WANTED, "pytorch_model*.bin"]))
    except (HFValidationError, HfHubHTTPError, LocalEntryNotFoundError, OSError) as error:
        raise CheckpointError(
            f"'{name}' is neither a folder here nor a model that the Hugging Face hub gave "
            f"({type(error).__name__}: {str(error).splitlines()[0]}); check the spelling and the network, "
            "or copy the model's files into a folder and name that"
        ) from error
    return folder


def _unpickled(path: Path) -> dict[str, Tensor]:
    try:
        found = torch.load(path, map_location="cpu", weights_only=True)
    except (pickle.UnpicklingError, RuntimeError, EOFError, OSError) as error:
        raise CheckpointError(
            f"{path} cannot be loaded safely ({str(error).splitlines()[0]}): it is damaged or holds more "
            "than tensors; save the model as safetensors"
        ) from error
    if not isinstance(found, dict) or not all(isinstance(t, Tensor) for t in found.values()):
        raise CheckpointError(f"{path} holds something else than tensors by name")
    return {str(name): tensor for name, tensor in found.items()}
