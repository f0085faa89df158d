"""One optimizer step: the loss of all target tokens of its micro-batches over their number."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import torch
from accelerate import Accelerator
from torch import Tensor, nn

from posattn.training.batches import Batch
from posattn.training.config import TrainConfig
from posattn.training.determinism import seed_noise
from posattn.training.forward import run_batch
from posattn.training.lanes import LaneMemory
from posattn.training.schedule import Schedule

MAX_SKIPS_IN_A_ROW = 50
"""After so many steps that the loss scaler skipped one after the other, the run has diverged."""


@runtime_checkable
class Scaler(Protocol):
    """A loss scaler, as `torch.amp.GradScaler`; its scale falls when it skips a step."""

    def scale(self, outputs: Tensor) -> Tensor:
        """Return the scaled loss."""

    def unscale_(self, optimizer: torch.optim.Optimizer) -> None:
        """Divide the gradients by the scale."""

    def step(self, optimizer: torch.optim.Optimizer) -> Any:
        """Step the optimizer, unless a gradient is not finite."""

    def update(self) -> None:
        """Set the scale of the next step."""

    def get_scale(self) -> float:
        """Return the scale."""

    def state_dict(self) -> dict[str, Any]:
        """Return the state as plain numbers."""

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take a state back."""


@dataclass(frozen=True)
class StepResult:
    """What a step saw and did; `problem` says why the run must end, if it must."""

    loss_sum: float
    targets: int
    tokens: int
    gradient_norm: float | None
    learning_rate: float | None
    moved: bool
    memory: LaneMemory
    problem: str | None = None


class Stepper:
    """Takes optimizer steps and counts those that moved the weights, and those that were skipped.

    With several processes the micro-batches of a step are dealt out to them and the gradients are
    summed, so a recipe means the same on any number of processes. This is done here and not by a
    wrapper around the model, because wrappers average over processes, whose targets differ in
    number.
    """

    def __init__(
        self,
        model: nn.Module,
        optimizer: torch.optim.Optimizer,
        schedule: Schedule,
        config: TrainConfig,
        accelerator: Accelerator,
        scaler: Scaler | None = None,
    ) -> None:
        """Take the model as it stands on the accelerator's device."""
        self.model = model
        self.optimizer = optimizer
        self.schedule = schedule
        self.config = config
        self.accelerator = accelerator
        self.scaler = scaler
        self.taken = 0
        self.skipped = 0
        self.skipped_in_a_row = 0
        self._parameters = [p for group in optimizer.param_groups for p in group["params"]]

    def step(self, batches: Sequence[Batch], number: int, memory: LaneMemory) -> StepResult:
        """Take the step `number` (from 0); a step without target tokens moves nothing."""
        targets = sum(batch.num_targets for batch in batches)
        tokens = sum(int(batch.visible.sum()) for batch in batches)
        loss, memory = self._gradients(batches, number, targets, memory)
        if targets == 0:
            self.skipped += 1
            self.optimizer.zero_grad(set_to_none=True)
            return StepResult(0.0, 0, tokens, None, None, False, memory)
        rate = self.schedule.rate(self.taken)
        norm, loss_sum = self._norm(loss)
        problem = self._problem(loss_sum, norm)
        moved = problem is None and self._move(rate)
        if problem is None and self.skipped_in_a_row >= MAX_SKIPS_IN_A_ROW:
            problem = f"the loss scaler skipped {self.skipped_in_a_row} steps in a row"
        self.optimizer.zero_grad(set_to_none=True)
        return StepResult(loss_sum, targets, tokens, norm, rate, moved, memory, problem)

    def state(self) -> dict[str, Any]:
        """Return counts and scaler state as plain data."""
        return {
            "taken": self.taken,
            "skipped": self.skipped,
            "skipped_in_a_row": self.skipped_in_a_row,
            "scaler": None if self.scaler is None else self.scaler.state_dict(),
        }

    def load_state(self, state: dict[str, Any]) -> None:
        """Take back what `state` returned."""
        self.taken = int(state["taken"])
        self.skipped = int(state["skipped"])
        self.skipped_in_a_row = int(state["skipped_in_a_row"])
        if self.scaler is not None and state["scaler"] is not None:
            self.scaler.load_state_dict(state["scaler"])

    def _gradients(
        self, batches: Sequence[Batch], number: int, targets: int, memory: LaneMemory
    ) -> tuple[Tensor, LaneMemory]:
        """Add up the gradients of this process; return its sum of losses, and the memory."""
        device, precision = self.accelerator.device, self.config.precision
        self.model.train()
        total = torch.zeros((), dtype=torch.float64, device=device)
        for index, batch in enumerate(batches):
            if index % self.accelerator.num_processes != self.accelerator.process_index:
                continue
            seed_noise(self.config.seed, number, index)
            result = run_batch(self.model, batch, device, precision, memory.before(batch))
            memory = memory.after(batch, result.memory)
            if targets:
                loss = result.losses().sum()
                total += loss.detach()
                mean = loss / targets
                self.accelerator.backward(self.scaler.scale(mean) if self.scaler else mean)
        return total, memory

    def _norm(self, loss: Tensor) -> tuple[float, float]:
        """Sum over processes and clip; return the gradient's norm before that, and the loss sum."""
        if self.accelerator.num_processes > 1:
            loss = self._sum_over_processes(loss)
        if self.scaler is not None:
            self.scaler.unscale_(self.optimizer)
        limit = math.inf if self.config.clip_norm is None else self.config.clip_norm
        norm = nn.utils.clip_grad_norm_(self._parameters, limit)
        pair = torch.stack([norm.to(torch.float64), loss]).tolist()
        return pair[0], pair[1]

    def _sum_over_processes(self, loss: Tensor) -> Tensor:
        for parameter in self._parameters:
            if parameter.grad is None:
                parameter.grad = torch.zeros_like(parameter)
        flat = torch.cat([parameter.grad.reshape(-1) for parameter in self._parameters])
        flat = self.accelerator.reduce(flat, reduction="sum")
        start = 0
        for parameter in self._parameters:
            part = flat[start : start + parameter.numel()]
            parameter.grad.copy_(part.view_as(parameter))
            start += parameter.numel()
        summed: Tensor = self.accelerator.reduce(loss, reduction="sum")
        return summed

    def _problem(self, loss_sum: float, norm: float) -> str | None:
        if not math.isfinite(loss_sum):
            return f"the loss is {'not a number' if math.isnan(loss_sum) else 'infinite'}"
        if self.scaler is None and not math.isfinite(norm):
            return f"the gradient is {'not a number' if math.isnan(norm) else 'infinite'}"
        return None

    def _move(self, rate: float) -> bool:
        """Step the optimizer; return whether it moved (a loss scaler may skip)."""
        for group in self.optimizer.param_groups:
            group["lr"] = rate
        if self.scaler is None:
            self.optimizer.step()
            moved = True
        else:
            before = self.scaler.get_scale()
            self.scaler.step(self.optimizer)
            self.scaler.update()
            moved = self.scaler.get_scale() >= before
        # the fused optimizer writes past autograd's version counters, by which caches see new weights
        torch.autograd.graph.increment_version(self._parameters)
        self.taken += moved
        self.skipped += not moved
        self.skipped_in_a_row = 0 if moved else self.skipped_in_a_row + 1
        return moved
