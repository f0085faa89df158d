"""tuning.json, which is also the optional part `tuning` of results.json: every trial of every arm."""

from collections.abc import Mapping
from typing import Any, Literal

from pydantic import Field

from posattn.comparison.results_part import Part


def values_in_words(values: Mapping[str, Any]) -> str:
    """Return a point of the grid in words: `train.learning_rate 0.001, train.weight_decay 0.1`."""
    return ", ".join(f"{path} {value}" for path, value in values.items())


class TrialRun(Part):
    """One trial with one tuning seed; `folder` is relative to the study's."""

    seed: int
    state: str
    score: float | None
    reason: str | None
    seconds: float | None
    tokens: int
    folder: str


class Trial(Part):
    """One point of the grid in one arm; `mean` over seeds is null unless all of them finished."""

    number: int
    values: dict[str, Any]
    state: Literal["finished", "failed"]
    mean: float | None
    runs: list[TrialRun]


class ArmTuning(Part):
    """All trials of an arm, and the number of the chosen one.

    `edges` are the paths whose chosen value is the "lowest" or "highest" tried: such an arm counts as
    not tuned. `expected` is the best score to be expected of 1, 2, ... trials drawn from those that
    finished (Dodge et al. 2019).
    """

    arm: str
    trials: list[Trial]
    chosen: int
    values: dict[str, Any]
    edges: dict[str, Literal["lowest", "highest"]] = Field(default_factory=dict)
    expected: list[float] = Field(default_factory=list)

    @property
    def tuned(self) -> bool:
        """Return whether no chosen value is at an edge of the grid."""
        return not self.edges

    @property
    def failed(self) -> list[Trial]:
        """Return the trials of which not every run finished."""
        return [trial for trial in self.trials if trial.state == "failed"]


class TuningInfo(Part):
    """The grid, the seeds, the score that chose, and the trials of each arm.

    `seconds` are those that all trials trained, failed ones too; `plan` is a digest of all that decides
    them.
    """

    grid: dict[str, list[Any]]
    seeds: list[int]
    steps: int | None
    select_by: str
    better: Literal["lower", "higher"]
    trials_per_arm: int
    arms: list[ArmTuning]
    seconds: float
    folder: str = "tuning"
    plan: str = ""

    def arm(self, name: str) -> ArmTuning:
        """Return the trials of the arm of this name."""
        return next(arm for arm in self.arms if arm.arm == name)
