"""The scores that a study can be judged by: their unit, and which direction is better."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import isfinite
from typing import Literal

from posattn.admission import instance_check
from posattn.registry import Registry


@dataclass(frozen=True)
class Metric:
    """One score of a run: where `evaluations.json` holds it, its unit and its direction.

    Stored values are multiplied by `factor` and printed with `digits` decimals.
    """

    name: str
    label: str
    unit: str
    better: Literal["lower", "higher"]
    section: str
    key: str
    digits: int = 3
    factor: float = 1.0
    difference_unit: str = ""

    @property
    def unit_of_difference(self) -> str:
        """Return the unit of a difference of two values."""
        return self.difference_unit or self.unit


def best(values: Sequence[float | None], metric: Metric) -> int | None:
    """Return the index of the best value in the metric's direction, the first of equal ones.

    A value that is missing, not a number or infinite is never best; None where no other is there.
    """
    known = [i for i, value in enumerate(values) if value is not None and isfinite(value)]
    sign = 1.0 if metric.better == "lower" else -1.0
    return min(known, key=lambda index: sign * (values[index] or 0.0), default=None)


metrics: Registry[Metric] = Registry("metric", "posattn.metrics", instance_check(Metric))

metrics.add(
    "validation_loss",
    Metric(
        "validation_loss",
        "validation loss",
        "nats per masked token",
        "lower",
        section="validation",
        key="loss",
    ),
)
metrics.add(
    "validation_accuracy",
    Metric(
        "validation_accuracy",
        "validation accuracy",
        "% of masked tokens",
        "higher",
        section="validation",
        key="accuracy",
        digits=1,
        factor=100.0,
        difference_unit="percentage points",
    ),
)
