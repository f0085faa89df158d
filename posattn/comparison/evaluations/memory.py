"""Peak memory of training one arm, measured in a process that does nothing else."""

import gc
from dataclasses import dataclass

import psutil
import torch
from torch import nn

from posattn.comparison.evaluations.timing import Contestant, first_batch
from posattn.comparison.worker import Report
from posattn.errors import DataError, IncompatibleParts
from posattn.recipe.schema import Recipe
from posattn.training.determinism import reproducible
from posattn.training.environment import peak_resident_bytes


@dataclass(frozen=True)
class MemoryTask:
    """One arm, and how many steps it trains; sizes are the recipe's unless given."""

    recipe: Recipe
    steps: int
    batch_size: int | None = None
    length: int | None = None


def peak_memory(task: MemoryTask, report: Report) -> int | None:
    """Return the bytes that model, gradients, optimizer and activations add at their peak.

    None if the arm cannot take the length. To be called in a fresh process: a peak never falls.
    """
    with reproducible(task.recipe.train.threads):
        try:
            first_batch(task.recipe, task.batch_size, task.length)
        except DataError:
            return None
        _warm_up()
        gc.collect()
        before = psutil.Process().memory_info().rss
        try:
            arm = Contestant(task.recipe, task.batch_size, task.length)
            for _ in range(task.steps):
                arm.training_step()
        except IncompatibleParts:
            return None
        if arm.device.type == "cuda":
            return int(torch.cuda.max_memory_allocated(arm.device))
        return max(0, peak_resident_bytes() - before)


def _warm_up() -> None:
    """Let the libraries allocate what they keep anyway."""
    layer = nn.Linear(8, 8)
    layer(torch.zeros(2, 8)).sum().backward()
    torch.optim.AdamW(layer.parameters(), fused=True).step()
