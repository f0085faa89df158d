"""Optimizer state as plain tensors under the parameters' names."""

import torch
from torch import Tensor

from posattn.errors import CheckpointError


def optimizer_tensors(optimizer: torch.optim.Optimizer) -> dict[str, Tensor]:
    """Return the state as `parameter name / state name`; each group must carry its `names`."""
    tensors: dict[str, Tensor] = {}
    for name, parameter in _named(optimizer).items():
        for key, value in optimizer.state.get(parameter, {}).items():
            tensors[f"{name}/{key}"] = torch.as_tensor(value)
    return tensors


def load_optimizer(optimizer: torch.optim.Optimizer, tensors: dict[str, Tensor]) -> None:
    """Put back what `optimizer_tensors` returned; names and shapes must be the optimizer's."""
    named = _named(optimizer)
    found: dict[str, dict[str, Tensor]] = {}
    for full, value in tensors.items():
        name, _, key = full.rpartition("/")
        found.setdefault(name, {})[key] = value
    unknown = sorted(set(found) - set(named))
    wrong = [
        f"{name}/{key}"
        for name, state in found.items()
        for key, value in state.items()
        if name in named and value.ndim and value.shape != named[name].shape
    ]
    if unknown or wrong:
        raise CheckpointError(
            f"the optimizer state is not of this model: unknown {unknown}, other shapes {wrong}"
        )
    content = optimizer.state_dict()
    index = {name: number for number, name in enumerate(named)}
    content["state"] = {index[name]: state for name, state in found.items()}
    optimizer.load_state_dict(content)


def _named(optimizer: torch.optim.Optimizer) -> dict[str, Tensor]:
    return {
        name: parameter
        for group in optimizer.param_groups
        for name, parameter in zip(group["names"], group["params"], strict=True)
    }
