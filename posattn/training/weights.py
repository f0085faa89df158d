"""Model weights as safetensors: a tied tensor is stored once and is tied again after loading."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TypeAlias

import safetensors
import safetensors.torch
import torch
from safetensors import SafetensorError
from torch import Tensor, nn

from posattn.errors import CheckpointError
from posattn.training.durable import write_bytes

Shape: TypeAlias = tuple[int, ...]


def unique_tensors(model: nn.Module) -> tuple[dict[str, Tensor], dict[str, str]]:
    """Return the model's tensors, each once, and for each further name the one it is stored by."""
    kept: dict[str, Tensor] = {}
    aliases: dict[str, str] = {}
    first: dict[int, str] = {}
    for name, tensor in model.state_dict(keep_vars=True).items():
        if id(tensor) in first:
            aliases[name] = first[id(tensor)]
        else:
            first[id(tensor)] = name
            kept[name] = tensor.detach()
    return kept, aliases


def pack_weights(model: nn.Module) -> bytes:
    """Return the safetensors file of the model's weights."""
    tensors, aliases = unique_tensors(model)
    return pack_tensors(tensors, {"aliases": json.dumps(aliases, sort_keys=True)})


def pack_tensors(tensors: Mapping[str, Tensor], metadata: dict[str, str] | None = None) -> bytes:
    """Return the safetensors file of these tensors, each copied out on its own."""
    plain = {name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}
    return safetensors.torch.save(plain, metadata)


def save_weights(model: nn.Module, path: Path) -> None:
    """Put the model's weights at `path` at once."""
    write_bytes(path, pack_weights(model))


def read_tensors(path: Path) -> dict[str, Tensor]:
    """Return the tensors of a safetensors file; no other format is ever opened."""
    try:
        return safetensors.torch.load_file(path)
    except (OSError, SafetensorError) as error:
        raise _unreadable(path, error) from error


@dataclass(frozen=True)
class Unmatched:
    """What a model and stored weights do not have in common; another shape counts on both sides."""

    new: tuple[str, ...]  # only the model has it
    unused: tuple[str, ...]  # only the file has it

    def refused(self, accept_new: Iterable[str], accept_unused: Iterable[str]) -> "Unmatched":
        """Return what none of the patterns names (`*` stands for any part of a name)."""
        return Unmatched(_beside(self.new, accept_new), _beside(self.unused, accept_unused))


def unmatched(wanted: Mapping[str, Shape], stored: Mapping[str, Shape]) -> Unmatched:
    """Return the names that only one side has, or that have another shape there."""
    new = [name for name, shape in wanted.items() if stored.get(name) != shape]
    unused = [name for name, shape in stored.items() if wanted.get(name) != shape]
    return Unmatched(tuple(sorted(new)), tuple(sorted(unused)))


def shapes(tensors: Mapping[str, Tensor]) -> dict[str, Shape]:
    """Return the shape of each tensor."""
    return {name: tuple(tensor.shape) for name, tensor in tensors.items()}


def stored_shapes(path: Path) -> dict[str, Shape]:
    """Return the shapes in a safetensors file without reading its tensors."""
    try:
        with safetensors.safe_open(path, "pt") as file:
            names: list[str] = file.keys()
            return {name: tuple(file.get_slice(name).get_shape()) for name in names}
    except (OSError, SafetensorError) as error:
        raise _unreadable(path, error) from error


def copy_weights(model: nn.Module, stored: Mapping[str, Tensor]) -> None:
    """Copy into the model each tensor whose name and shape it has."""
    with torch.no_grad():
        for name, tensor in unique_tensors(model)[0].items():
            if name in stored and stored[name].shape == tensor.shape:
                tensor.copy_(stored[name])


def _beside(names: Iterable[str], patterns: Iterable[str]) -> tuple[str, ...]:
    kept = list(patterns)
    return tuple(name for name in names if not any(fnmatchcase(name, glob) for glob in kept))


def _unreadable(path: Path, error: Exception) -> CheckpointError:
    return CheckpointError(
        f"{path} is not a readable safetensors file ({error}); "
        "weights are loaded from safetensors only, never from pickles"
    )


def load_weights(model: nn.Module, path: Path) -> None:
    """Copy the weights at `path` into the model; names and shapes must match exactly."""
    stored = read_tensors(path)
    wanted, _ = unique_tensors(model)
    missing = sorted(set(wanted) - set(stored))
    extra = sorted(set(stored) - set(wanted))
    differ = [
        f"{name}: {tuple(stored[name].shape)} in the file, {tuple(wanted[name].shape)} in the model"
        for name in wanted
        if name in stored and stored[name].shape != wanted[name].shape
    ]
    if missing or extra or differ:
        raise CheckpointError(
            f"the weights in {path} are not of this model: missing {missing}, "
            f"not in the model {extra}, other shapes {differ}"
        )
    copy_weights(model, stored)
