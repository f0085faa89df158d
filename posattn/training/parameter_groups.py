"""Which parameters decay: decided by module type and shape, never by a parameter's name.

The first line that fits decides:
- `frozen`: needs no gradient; the optimizer does not see it.
- `no_decay`: a parameter of a normalisation module, and every vector or scalar (biases, gains,
  slopes), also within the position mechanism. Weight decay 0.
- `position`: any other parameter of the position mechanism (tables, projections of positions).
  Weight decay 0, or `weight_decay` with `position_weight_decay: true`.
- `decay`: any other matrix (linear and embedding weights). Weight decay `weight_decay`.
"""

import hashlib
from collections.abc import Collection, Mapping
from typing import Any

import torch
from torch import Tensor, nn

from posattn.errors import IncompatibleParts
from posattn.training.config import TrainConfig

NORMALISATIONS = (
    nn.LayerNorm,
    nn.RMSNorm,
    nn.GroupNorm,
    nn.LocalResponseNorm,
    nn.modules.batchnorm._NormBase,
)


def group_parameters(model: nn.Module, position: Collection[str]) -> dict[str, str]:
    """Return the group of each parameter by name; a tied one counts once, by its first name."""
    names = {name for name, _ in model.named_parameters(remove_duplicate=False)}
    unknown = sorted(set(position) - names)
    if unknown:
        raise IncompatibleParts(f"position parameters that the model does not have: {unknown}")
    normalising = {
        id(parameter)
        for module in model.modules()
        if isinstance(module, NORMALISATIONS)
        for parameter in module.parameters(recurse=False)
    }
    positional = {
        id(parameter)
        for name, parameter in model.named_parameters(remove_duplicate=False)
        if name in position
    }
    groups = {}
    for name, parameter in model.named_parameters():
        if not parameter.requires_grad:
            groups[name] = "frozen"
        elif id(parameter) in normalising or parameter.ndim < 2:
            groups[name] = "no_decay"
        else:
            groups[name] = "position" if id(parameter) in positional else "decay"
    return groups


def make_optimizer(
    model: nn.Module, groups: Mapping[str, str], config: TrainConfig
) -> torch.optim.AdamW:
    """Return AdamW over the groups; each optimizer group carries `group` and `names`."""
    decay = {
        "decay": config.weight_decay,
        "no_decay": 0.0,
        "position": config.weight_decay if config.position_weight_decay else 0.0,
    }
    parameters = dict(model.named_parameters())
    members: list[dict[str, Any]] = []
    for group, weight_decay in decay.items():
        names = [name for name, member in groups.items() if member == group]
        if names:
            chosen = [parameters[name] for name in names]
            members.append(
                {"params": chosen, "weight_decay": weight_decay, "group": group, "names": names}
            )
    if not members:
        raise IncompatibleParts("the model has no parameter that needs a gradient")
    return torch.optim.AdamW(
        members, lr=config.learning_rate, betas=config.betas, eps=config.eps, fused=True
    )


def tensor_digest(tensor: Tensor) -> str:
    """Return the SHA-256 of dtype, shape and contents."""
    plain = tensor.detach().cpu().contiguous()
    head = f"{plain.dtype}{tuple(plain.shape)}".encode()
    return hashlib.sha256(head + plain.reshape(-1).view(torch.uint8).numpy().tobytes()).hexdigest()


def describe_parameters(
    model: nn.Module, groups: Mapping[str, str], position: Collection[str]
) -> dict[str, Any]:
    """Return the contents of parameters.json: counts; shape, digest and group of each tensor."""
    positional = {
        id(parameter)
        for name, parameter in model.named_parameters(remove_duplicate=False)
        if name in position
    }
    embedding = {
        id(parameter)
        for module in model.modules()
        if isinstance(module, nn.Embedding)
        for parameter in module.parameters(recurse=False)
    } - positional
    named = dict(model.named_parameters())
    return {
        "total": sum(parameter.numel() for parameter in named.values()),
        "position": sum(p.numel() for p in named.values() if id(p) in positional),
        "embedding": sum(p.numel() for p in named.values() if id(p) in embedding),
        "groups": {
            group: sum(named[name].numel() for name in groups if groups[name] == group)
            for group in sorted(set(groups.values()))
        },
        "tensors": {
            name: {
                "shape": list(parameter.shape),
                "digest": tensor_digest(parameter),
                "group": groups[name],
                "position": id(parameter) in positional,
            }
            for name, parameter in named.items()
        },
    }
