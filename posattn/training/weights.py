"""Model weights as safetensors: a tied tensor is stored once and is tied again after loading."""

import json
from collections.abc import Mapping
from pathlib import Path

import safetensors.torch
import torch
from safetensors import SafetensorError
from torch import Tensor, nn

from posattn.errors import CheckpointError
from posattn.training.durable import write_bytes


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
        raise CheckpointError(
            f"{path} is not a readable safetensors file ({error}); "
            "weights are loaded from safetensors only, never from pickles"
        ) from error


def load_weights(model: nn.Module, path: Path) -> None:
    """Copy the weights at `path` into the model; names and shapes must match exactly."""
    stored = read_tensors(path)
    wanted, _ = unique_tensors(model)
    missing = sorted(set(wanted) - set(stored))
    extra = sorted(set(stored) - set(wanted))
    shapes = [
        f"{name}: {tuple(stored[name].shape)} in the file, {tuple(wanted[name].shape)} in the model"
        for name in wanted
        if name in stored and stored[name].shape != wanted[name].shape
    ]
    if missing or extra or shapes:
        raise CheckpointError(
            f"the weights in {path} are not of this model: missing {missing}, "
            f"not in the model {extra}, other shapes {shapes}"
        )
    with torch.no_grad():
        for name, tensor in wanted.items():
            tensor.copy_(stored[name])
