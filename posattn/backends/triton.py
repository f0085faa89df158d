"""Fused kernels for biases between content and relation, forward and backward, by Triton.

No tensor of all pairs of queries and keys exists at any time, and every number of a gradient is written
by one program, so results repeat bit by bit. The package is imported when a call first runs.
"""

import importlib.util
import os
from typing import ClassVar, final

import torch
from typing_extensions import override

from posattn.backends.base import AttentionBackend, AttentionCall, backends
from posattn.backends.triton_plan import Plan
from posattn.backends.triton_statement import Statement
from posattn.shapes import QueryHeads

WIDEST_HEAD = 128
DTYPES = (torch.bfloat16, torch.float16, torch.float32)
INTERPRETED = (torch.float16, torch.float32, torch.float64)
"""What Triton's interpreter multiplies matrices in; it has no bfloat16."""
LONG = 512
"""Keys from which on a dense bias is taken to cost more than tiles; an estimate, not measured on a GPU."""


@final
@backends.register("triton")
class TritonBackend(AttentionBackend):
    """Tiles far from the diagonal add a row and a column; tiles near it read runs of scores."""

    name: ClassVar[str] = "triton"

    def __init__(self, tile: tuple[int, int] | None = None) -> None:
        """Make one; `tile` (queries, keys), powers of two from 16 on, replaces the sizes it would choose."""
        self._tile = tile
        self._last: Plan | None = None

    @override
    def refusals(self, call: AttentionCall) -> list[str]:
        said = Statement.of(call)
        reasons = [*_of_machine(call), *_of_numbers(call), *said.problems]
        if call.relative_values is not None:
            reasons.append(
                "it never forms the probabilities that relative values need (eager does)"
            )
        if not reasons and said.learns and self._plan(call, said).repeats:
            reasons.append(
                "tokens of one text share a position, so scores by distance have no gradient here (sdpa, "
                "eager add such tokens up)"
            )
        return reasons

    @override
    def rank(self, call: AttentionCall) -> int:
        if call.query.device.type != "cuda":
            return 1000  # the interpreter is for tests
        return 5 if call.bias is not None and call.key.shape[2] >= LONG else 15

    @override
    def run(self, call: AttentionCall) -> QueryHeads:
        from posattn.backends.triton_kernels.run import run

        said = Statement.of(call)
        return run(call, said, self._plan(call, said), self._tile)

    def _plan(self, call: AttentionCall, said: Statement) -> Plan:
        """Return the plan of the call, the last one if nothing about positions has changed."""
        plan = Plan.of(call, said)
        if torch.compiler.is_compiling():
            return plan
        if self._last is None or not self._last.is_for(plan):
            self._last = plan
        return self._last


def _of_machine(call: AttentionCall) -> list[str]:
    if importlib.util.find_spec("triton") is None:
        return ["the package 'triton' is not installed (pip install 'posattn[triton]')"]
    device = call.query.device
    if device.type == "cuda":
        major, minor = torch.cuda.get_device_capability(device)
        return (
            []
            if major >= 8
            else [f"the GPU has compute capability {major}.{minor} (it takes 8.0 on)"]
        )
    if is_interpreted():
        return []
    return [
        f"it runs on CUDA devices, not on {device.type} (with TRITON_INTERPRET=1, slowly, for tests)"
    ]


def _of_numbers(call: AttentionCall) -> list[str]:
    reasons = []
    able = INTERPRETED if is_interpreted() else DTYPES
    tensors = {"query": call.query, "key": call.key, "value": call.value}
    given = {str(one.dtype).removeprefix("torch.") for one in tensors.values()}
    if len(given) > 1 or call.query.dtype not in able:
        names = ", ".join(str(one).removeprefix("torch.") for one in able)
        reasons.append(f"it computes in one of {names}, not in {' and '.join(sorted(given))}")
    for name, one in tensors.items():
        if one.shape[-1] > WIDEST_HEAD:
            reasons.append(f"the heads of {name} are {one.shape[-1]} wide (at most {WIDEST_HEAD})")
    return reasons


def is_interpreted() -> bool:
    """Return whether Triton runs kernels in Python, on the CPU."""
    return os.environ.get("TRITON_INTERPRET") == "1"
