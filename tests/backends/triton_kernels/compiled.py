"""Compile every kernel for a GPU that need not be there, as the backend would launch it."""

import sys
from typing import Any

import torch
from triton.backends.compiler import GPUTarget
from triton.runtime import driver
from triton.runtime.jit import JITFunction

from posattn.backends import triton as backend
from posattn.bias import Causal, HeadDirections, Padding, SameDocument, Window
from tests.backends.triton_kernels.calls import counted, make


class AbsentGPU:
    """A driver that knows what to compile for and can launch nothing."""

    def get_current_device(self) -> int:
        return 0

    def get_current_target(self) -> GPUTarget:
        return GPUTarget("cuda", int(sys.argv[1]), 32)

    def get_current_stream(self, device: int) -> int:
        return 0

    def get_active_torch_device(self) -> torch.device:
        return torch.device("cpu")


def compile_only(kernel: JITFunction, *args: Any, grid: Any, warmup: bool, **options: Any) -> None:
    launch(kernel, *args, grid=grid, warmup=True, **options)
    compiled.add(kernel.__name__)


launch, JITFunction.run = JITFunction.run, compile_only
compiled: set[str] = set()
driver.set_active(AbsentGPU())
backend._of_machine = lambda call: []

visible = torch.ones(1, 32, dtype=torch.bool)
made = make(
    counted(32),
    counted(32),
    rules=lambda distance: (
        Padding(visible),
        SameDocument(visible.long(), visible.long()),
        Window(distance, 9),
        Causal(distance),
        HeadDirections(distance, 1, 1),
    ),
    width=24,
    dtype=torch.bfloat16,
)
call = made.call.__class__(**{**made.call.__dict__, "dropout": 0.1})
made.gradients(backend.TritonBackend((16, 16)).attend(call))
print(*sorted(compiled))
