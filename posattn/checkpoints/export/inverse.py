"""A mapping table read backwards: from our tensors to those that it would map to them."""

from collections.abc import Mapping

import torch
from torch import Tensor

from posattn.checkpoints.mapping import Table, Tensors, first_rule
from posattn.errors import CheckpointError
from posattn.training.weights import Shape, shapes


def tensors_behind(table: Table, stored: Mapping[str, Shape], ours: Tensors) -> dict[str, Tensor]:
    """Return the tensors of these names and shapes that the table maps to ours.

    Each rule is run on the numbers of places instead of on values, which shows where every value goes,
    so rules that split, join or reorder need no inverse of their own. Derived tensors are left out.
    CheckpointError if a rule does more than move values, or if one of ours has no counterpart.
    """
    wanted = shapes(ours)
    places = {name: _numbered(shape) for name, shape in stored.items()}
    made: dict[str, Tensor] = {}
    used: set[str] = set()
    for name, shape in stored.items():
        if any(item.is_about(name) for item in table.derived):
            continue
        found = first_rule(table.rules, name, wanted)
        if found is None:
            raise CheckpointError(f"{name} of transformers' class has no counterpart here")
        line, targets = found
        moved = dict(zip(targets, line.convert(places[name], places), strict=True))
        made[name] = _assembled(name, shape, {moved[target]: ours[target] for target in targets})
        used.update(targets)
    filled = {
        name
        for name, tensor in ours.items()
        if any(line.is_about(name) and bool((tensor == line.value).all()) for line in table.fills)
    }
    if left := sorted(ours.keys() - used - filled):
        raise CheckpointError(f"transformers' class has no place for {', '.join(left)}")
    return made


def _numbered(shape: Shape) -> Tensor:
    count = int(torch.Size(shape).numel())
    return torch.arange(count, dtype=torch.float64).view(shape)


def _assembled(name: str, shape: Shape, parts: Mapping[Tensor, Tensor]) -> Tensor:
    """Return the tensor with each value at its place; `parts` maps places to values."""
    dtype = next(iter(parts.values())).dtype
    flat = torch.full((int(torch.Size(shape).numel()),), float("nan"), dtype=dtype)
    seen = torch.zeros_like(flat, dtype=torch.long)
    for place, values in parts.items():
        index = place.flatten().round().long().clamp(0, flat.numel() - 1)
        if place.shape != values.shape or not torch.equal(index.double(), place.flatten()):
            raise CheckpointError(f"{name} is more than a rearrangement of our weights")
        flat[index] = values.flatten()
        seen.index_add_(0, index, torch.ones_like(index))
    if bool((seen != 1).any()):
        raise CheckpointError(f"{name} is more than a rearrangement of our weights")
    return flat.view(shape)
