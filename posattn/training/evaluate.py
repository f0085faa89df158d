"""Evaluation: total loss over total targets, so that it does not depend on how batches are cut."""

import math
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from posattn.errors import DataError
from posattn.training.batches import Batch
from posattn.training.config import Precision
from posattn.training.forward import Forward, run_batch
from posattn.training.lanes import LaneMemory


@dataclass(frozen=True)
class Evaluation:
    """Loss (nats per target token) and accuracy, in total, by sample and by position.

    `sample_ids`, `loss_sum`, `sample_targets` and `correct` have one entry for each sample, in
    ascending order of sample id; `position_loss_sum` and `position_targets` one for each position.
    """

    loss: float
    accuracy: float
    targets: int
    tokens: int
    sample_ids: NDArray[np.int64]
    loss_sum: NDArray[np.float64]
    sample_targets: NDArray[np.int64]
    correct: NDArray[np.int64]
    position_loss_sum: NDArray[np.float64]
    position_targets: NDArray[np.int64]

    @property
    def perplexity(self) -> float:
        """exp(loss); infinite where that is beyond float64."""
        return math.exp(self.loss) if self.loss < 709.0 else math.inf


def evaluate(
    model: nn.Module,
    batches: Iterable[Batch],
    device: torch.device | str = "cpu",
    precision: Precision = "float32",
) -> Evaluation:
    """Return the loss of a model on batches with fixed targets; its mode afterwards is as before.

    Batches with lanes carry segment memory from one to the next. Raises `DataError` if there is no
    target token at all.
    """
    device = torch.device(device)
    sums = _Sums()
    memory = LaneMemory(model)
    with evaluating(model), torch.inference_mode():
        for batch in batches:
            result = run_batch(model, batch, device, precision, memory.before(batch))
            memory = memory.after(batch, result.memory)
            sums.add(batch, result)
    return sums.result()


@contextmanager
def evaluating(model: nn.Module) -> Iterator[None]:
    """Put the model in evaluation mode and every module back into its own mode afterwards."""
    training = [module for module in model.modules() if module.training]
    model.eval()
    try:
        yield
    finally:
        for module in training:
            module.training = True


class _Sums:
    """Sums in float64, by row of the batches and by position."""

    def __init__(self) -> None:
        self.rows: list[tuple[Tensor, Tensor, Tensor, Tensor]] = []
        self.loss_by_position = torch.zeros(0, dtype=torch.float64)
        self.targets_by_position = torch.zeros(0, dtype=torch.int64)
        self.tokens = 0

    def add(self, batch: Batch, result: Forward) -> None:
        losses = result.losses().detach().to("cpu", torch.float64)
        hits = (result.logits.argmax(-1) == result.targets).cpu().to(torch.int64)
        row, column = batch.selected.nonzero(as_tuple=True)
        ones = torch.ones_like(row)
        num_rows, length = batch.ids.shape
        self.rows.append(
            (
                batch.sample_ids.to(torch.int64),
                torch.zeros(num_rows, dtype=torch.float64).index_add_(0, row, losses),
                torch.zeros(num_rows, dtype=torch.int64).index_add_(0, row, ones),
                torch.zeros(num_rows, dtype=torch.int64).index_add_(0, row, hits),
            )
        )
        self._grow(length)
        self.loss_by_position.index_add_(0, column, losses)
        self.targets_by_position.index_add_(0, column, ones)
        self.tokens += int(batch.visible.sum())

    def result(self) -> Evaluation:
        total = int(self.targets_by_position.sum())
        if total == 0:
            raise DataError(
                f"nothing to evaluate: {len(self.rows)} batches with {self.tokens} tokens hold no "
                "target token; give more validation text or a higher objective.probability"
            )
        ids, loss_sum, targets, correct = (
            torch.cat(column).numpy() for column in zip(*self.rows, strict=True)
        )
        order = np.argsort(ids, kind="stable")
        return Evaluation(
            loss=math.fsum(loss_sum) / total,
            accuracy=int(correct.sum()) / total,
            targets=total,
            tokens=self.tokens,
            sample_ids=ids[order],
            loss_sum=loss_sum[order],
            sample_targets=targets[order],
            correct=correct[order],
            position_loss_sum=self.loss_by_position.numpy(),
            position_targets=self.targets_by_position.numpy(),
        )

    def _grow(self, length: int) -> None:
        missing = length - len(self.loss_by_position)
        if missing > 0:
            pad = (0, missing)
            self.loss_by_position = torch.nn.functional.pad(self.loss_by_position, pad)
            self.targets_by_position = torch.nn.functional.pad(self.targets_by_position, pad)
