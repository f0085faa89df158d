"""Learning rate by optimizer step, and how many steps a run takes."""

import math
from dataclasses import dataclass

from posattn.errors import DataError, RecipeError
from posattn.training.config import TrainConfig


@dataclass(frozen=True)
class StepPlan:
    """Where each optimizer step stands in the data; known before the run.

    The last step of an epoch flushes: it takes the micro-batches that are left, so 5 of them with
    accumulation 2 are 3 steps (2 + 2 + 1). Position is a function of the step number alone.
    """

    batches_per_epoch: int
    accumulation: int
    steps: int

    @property
    def steps_per_epoch(self) -> int:
        """Optimizer steps in one pass over the training text."""
        return math.ceil(self.batches_per_epoch / self.accumulation)

    def position(self, step: int) -> tuple[int, int]:
        """Return epoch and index of the first micro-batch that follows after `step` steps."""
        epoch, done = divmod(step, self.steps_per_epoch)
        return epoch, done * self.accumulation

    def num_batches(self, step: int) -> int:
        """Return how many micro-batches the step after `step` steps takes."""
        return min(self.accumulation, self.batches_per_epoch - self.position(step)[1])


def plan_steps(config: TrainConfig, batches_per_epoch: int) -> StepPlan:
    """Return the plan of a run on an epoch of so many micro-batches."""
    if batches_per_epoch < 1:
        raise DataError(
            "the training split gives no batch; it needs at least one sequence of text "
            f"(batch_size is {config.batch_size})"
        )
    per_epoch = math.ceil(batches_per_epoch / config.accumulation)
    steps = config.steps if config.steps is not None else (config.epochs or 1) * per_epoch
    return StepPlan(batches_per_epoch, config.accumulation, steps)


@dataclass(frozen=True)
class Schedule:
    """The learning rate as a function of the number of real optimizer steps taken so far.

    Warm-up: real step 1 of W uses 1/W of the peak, step W the peak. Then linear or half-cosine
    decay that stands exactly at `final_fraction` of the peak after the last step of the run;
    constant stays at the peak. A step that moved no weight does not count.
    """

    kind: str
    peak: float
    steps: int
    warmup: int = 0
    final_fraction: float = 0.0

    def factor(self, taken: int) -> float:
        """Return the part of the peak that the next real step uses after `taken` real steps."""
        if taken < self.warmup:
            return (taken + 1) / self.warmup
        if self.kind == "constant":
            return 1.0
        if taken >= self.steps:
            return self.final_fraction
        start = max(self.warmup - 1, 0)
        progress = (taken - start) / (self.steps - start)
        if self.kind == "cosine":
            progress = 0.5 * (1.0 - math.cos(math.pi * progress))
        return 1.0 - (1.0 - self.final_fraction) * progress

    def rate(self, taken: int) -> float:
        """Return the learning rate of the next real step after `taken` real steps."""
        return self.peak * self.factor(taken)


def make_schedule(config: TrainConfig, steps: int) -> Schedule:
    """Return the schedule of a run of `steps` steps; a fraction is rounded to whole steps."""
    if config.warmup_fraction is not None:
        warmup = round(config.warmup_fraction * steps)
    else:
        warmup = config.warmup_steps or 0
    if warmup > steps:
        raise RecipeError(
            f"train.warmup_steps is {warmup}, but train.epochs ({config.epochs}) gives only "
            f"{steps} steps; use fewer, or warmup_fraction"
        )
    return Schedule(config.schedule, config.learning_rate, steps, warmup, config.final_fraction)
