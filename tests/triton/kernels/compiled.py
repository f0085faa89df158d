"""Compile every kernel for a GPU that need not be there, as the backend would launch it.

`90` compiles for compute capability 9.0 and prints the kernels; `count` compiles nothing and prints how many
versions of each attention kernel calls of several lengths, batches and pieces would need.
"""

import sys
from collections import defaultdict
from dataclasses import replace
from typing import Any

import torch
from triton.backends.compiler import GPUTarget
from triton.runtime import driver
from triton.runtime.jit import JITFunction

from posattn.backends import triton as backend
from posattn.backends.triton_kernels import chunks
from posattn.bias import Causal, HeadDirections, Padding, SameDocument, Window
from tests.triton.kernels.calls import counted, make


class AbsentGPU:
    """A driver that knows what to compile for and can launch nothing."""

    def get_current_device(self) -> int:
        return 0

    def get_current_target(self) -> GPUTarget:
        return GPUTarget("cuda", 90, 32)

    def get_current_stream(self, device: int) -> int:
        return 0

    def get_active_torch_device(self) -> torch.device:
        return torch.device("cpu")


launch = JITFunction.run
versions: dict[str, set[str]] = defaultdict(set)


def compile_only(kernel: JITFunction, *args: Any, grid: Any, warmup: bool, **options: Any) -> None:
    launch(kernel, *args, grid=grid, warmup=True, **options)
    versions[kernel.__name__].add("compiled")


def note_only(kernel: JITFunction, key: str, *args: Any, **options: Any) -> None:
    versions[kernel.__name__].add(key)


def compile_all() -> None:
    """Compile a call with everything that can be asked for."""
    visible = torch.ones(1, 32, dtype=torch.bool)
    rules = (Padding(visible), SameDocument(visible.long(), visible.long()))

    def with_distances(distance: Any) -> tuple[Any, ...]:
        return (*rules, Window(distance, 9), Causal(distance), HeadDirections(distance, 1, 1))

    at = counted(32)
    made = make(at, at, rules=with_distances, width=24, dtype=torch.bfloat16)
    call = replace(made.call, dropout=0.1)
    made.gradients(backend.TritonBackend((16, 16)).attend(call))
    print(*sorted(versions))


def count_versions() -> None:
    """Note the versions that calls of several sizes need."""
    for batch, length, memory in ((1, 64, 2**30), (2, 128, 2**30), (3, 320, 2**30), (2, 64, 2**16)):
        chunks.WORKING_MEMORY = memory
        at = counted(length).expand(batch, -1)
        made = make(at, at, heads=2, width=64, parts=("c2p", "p2c"), dtype=torch.bfloat16)
        made.gradients(backend.TritonBackend((16, 16)).attend(made.call))
    print(*(len(keys) for name, keys in sorted(versions.items()) if "ward" in name))


driver.set_active(AbsentGPU())
JITFunction.run = compile_only
backend._of_machine = lambda call: []
if sys.argv[1] == "count":
    JITFunction._do_compile = note_only
    JITFunction.run = lambda kernel, *args, **options: launch(
        kernel, *args, **{**options, "warmup": True}
    )
    count_versions()
else:
    compile_all()
