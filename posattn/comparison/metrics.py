"""The scores that a study can be judged by: their unit, and which direction is better."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
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

    def best(self, values: Sequence[float | None]) -> int | None:
        """Return the index of the best value by the metric's direction, of equal ones the first.

        None and what is not finite is never best; without any other value the answer is None.
        """
        sign = 1.0 if self.better == "lower" else -1.0
        known = [
            (sign * value, index)
            for index, value in enumerate(values)
            if value is not None and math.isfinite(value)
        ]
        return min(known)[1] if known else None


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
