"""Peak memory of one contestant in a process of its own."""

import gc
import multiprocessing
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass

import psutil
import torch

from posattn.bench.contestant import Contestant
from posattn.bench.entrant import Entrant
from posattn.bench.inputs import make_inputs
from posattn.bench.plan import Cell, ModelSize
from posattn.training.config import Precision
from posattn.training.environment import peak_resident_bytes

_MODELS = ("bert", "deberta_v2", "modernbert", "roformer", "t5", "xlnet")
PRELOAD = [
    "posattn.bench.memory",
    "posattn.bench.subjects",
    "torch._dynamo",
    "x_transformers",
    "disentangled_flash",
    *(f"transformers.models.{name}.modeling_{name}" for name in _MODELS),
]
"""What processes start with, where it is installed, so that importing it costs time only once."""


@dataclass(frozen=True)
class MemoryTask:
    """What the process is to build and to run; the entrant comes by its subject and its name."""

    subject: str
    name: str
    backends: tuple[str, ...]
    size: ModelSize
    cell: Cell
    device: str
    threads: int | None
    precision: Precision


def peak_memory(task: MemoryTask) -> int | None:
    """Return the bytes that weights and one step add at their peak, or None if the process died."""
    methods = multiprocessing.get_all_start_methods()
    context = multiprocessing.get_context("forkserver" if "forkserver" in methods else "spawn")
    if "forkserver" in methods:
        context.set_forkserver_preload(PRELOAD)
    with ProcessPoolExecutor(1, mp_context=context) as pool:
        try:
            return pool.submit(measured_here, task).result()
        except BrokenProcessPool:
            return None


def measured_here(task: MemoryTask) -> int:
    """Measure in this process, whose peak must come from nothing else."""
    if task.threads is not None:
        torch.set_num_threads(task.threads)
    device = torch.device(task.device)
    small = task.size.model_copy(update={"num_layers": 1, "vocab_size": 16})
    _run(_entrant(task), small, task.cell.model_copy(update={"batch_size": 1, "length": 8}), task)
    gc.collect()
    if device.type == "cuda":
        torch.cuda.reset_peak_memory_stats(device)
        before = torch.cuda.memory_allocated(device)
        _run(_entrant(task), task.size, task.cell, task)
        return int(torch.cuda.max_memory_allocated(device) - before)
    before = psutil.Process().memory_info().rss
    _run(_entrant(task), task.size, task.cell, task)
    return max(0, peak_resident_bytes() - before)


def _entrant(task: MemoryTask) -> Entrant:
    from posattn.bench.subjects import subject

    one, unpad = subject(task.subject), task.cell.mixed is not None
    entrants = one.entrants(task.backends, rivals=True, unpad=unpad)
    return next(one for one in entrants if one.name == task.name)


def _run(entrant: Entrant, size: ModelSize, cell: Cell, task: MemoryTask) -> None:
    device = torch.device(task.device)
    contestant = Contestant(entrant, size, cell.stage, device, precision=task.precision)
    inputs = make_inputs(cell, size.vocab_size, device)
    entrant.prepare(contestant.model, inputs.ids.shape[1])
    for _ in range(2):
        contestant.timed(inputs)
