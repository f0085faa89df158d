"""The optional part `budget` of results.json: what each arm got, and what was left over."""

from typing import Any

from pydantic import Field

from posattn.comparison.results_part import Part

COMPARED = ("tokens", "parameters", "training_flops", "seconds")
"""The budgets that are compared with the baseline's."""


class ArmBudget(Part):
    """The budget of one arm; null where no finished run says it.

    `seconds` is the median over finished runs of the time they trained, `expected_seconds` what the
    timing before the runs promised, `seconds_of_all` the sum over all runs, failed ones too.
    `over_baseline` is the relative difference from the baseline: 0.01 is one percent more.
    """

    arm: str
    steps: int | None = None
    width: int | None = None
    parameters: int | None = None
    flops_per_token: float | None = None
    tokens: int | None = None
    training_flops: float | None = None
    seconds: float | None = None
    expected_seconds: float | None = None
    seconds_of_all: float = 0.0
    over_baseline: dict[str, float | None] = Field(default_factory=dict)


class BudgetInfo(Part):
    """What all arms have equal (`held`), by which path it was set, and the budget of each arm."""

    match: str
    options: dict[str, Any]
    held: str
    sets: str | None
    arms: list[ArmBudget]
    file: str | None = None

    def arm(self, name: str) -> ArmBudget:
        """Return the budget of the arm of this name."""
        return next(budget for budget in self.arms if budget.arm == name)
