"""First values of parameters, each from its own generator seeded by (seed, name).

Two models that share a parameter's name and shape start with the same values there, whatever else
they have: an added table shifts nobody else's chance.
"""

import hashlib

import torch
from torch import Tensor, nn

from posattn.encoder.model import MaskedLanguageModel
from posattn.encoder.tasks import TaskModel
from posattn.mechanisms import FanInLinear


def initialize(model: MaskedLanguageModel | TaskModel, seed: int) -> None:
    """Set weights of projections and tables to N(0, initializer_range), biases to 0, norms to 1 and 0.

    Weights and biases of a mechanism's `FanInLinear` are uniform within 1 / sqrt(in_features).
    Parameters of other modules keep the value that their constructor gave them.
    """
    spread = model.config.initializer_range
    done: set[int] = set()
    with torch.no_grad():
        for prefix, module in model.named_modules():
            for name, parameter in module.named_parameters(prefix, recurse=False):
                if id(parameter) not in done:
                    done.add(id(parameter))
                    _initialize(module, name, parameter, seed, spread)


def named_generator(seed: int, name: str) -> torch.Generator:
    """Return a generator that depends on the seed and the name, on the CPU whatever the device."""
    digest = hashlib.sha256(f"{seed}:{name}".encode()).digest()
    return torch.Generator().manual_seed(int.from_bytes(digest[:8], "little") >> 1)


def _initialize(module: nn.Module, name: str, parameter: Tensor, seed: int, spread: float) -> None:
    is_bias = name.endswith("bias")
    if isinstance(module, FanInLinear):
        reach = module.in_features**-0.5
        unit = torch.rand(parameter.shape, generator=named_generator(seed, name))
        parameter.copy_((2.0 * unit - 1.0) * reach)
    elif isinstance(module, nn.LayerNorm | nn.RMSNorm):
        parameter.fill_(0.0 if is_bias else 1.0)
    elif isinstance(module, nn.Linear | nn.Embedding | nn.Conv1d):
        if is_bias:
            parameter.zero_()
        else:
            noise = torch.randn(parameter.shape, generator=named_generator(seed, name))
            parameter.copy_(noise * spread)
