"""`torch.compile` for a run: what it needs, and how many graphs it made."""

import shutil
from collections.abc import Callable, Sequence
from typing import Any, final

import torch
from torch import Tensor, fx, nn

from posattn.errors import IncompatibleParts

BACKEND = "inductor"
COMPILERS = ("g++", "clang++", "c++", "cl")


@final
class Graphs:
    """The compiler of a model's graphs, torch's own, which counts them."""

    def __init__(self) -> None:
        """Start with none."""
        self.count = 0

    def __call__(self, graph: fx.GraphModule, inputs: Sequence[Tensor]) -> Callable[..., Any]:
        """Compile one graph."""
        from torch._dynamo.backends.registry import lookup_backend

        self.count += 1
        return lookup_backend(BACKEND)(graph, list(inputs))


def compile_model(model: nn.Module, device: torch.device) -> Graphs:
    """Let the model compile itself when it first runs, for all lengths; return what counts its graphs."""
    check_compiler(device)
    graphs = Graphs()
    model.compile(dynamic=True, backend=graphs)
    return graphs


def check_compiler(device: torch.device) -> None:
    """Raise `IncompatibleParts` if nothing here can compile for the device."""
    if missing := missing_compiler(device):
        raise IncompatibleParts(
            f"train.compile is true, but {missing}; install one, or set train.compile to false"
        )


def missing_compiler(device: torch.device) -> str:
    """Return why nothing here can compile for the device; empty if something can."""
    if device.type != "cpu" or any(map(shutil.which, COMPILERS)):
        return ""
    return (
        f"torch.compile needs a C++ compiler for a CPU, and none of {', '.join(COMPILERS)} is here"
    )
