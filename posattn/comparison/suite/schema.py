"""The schema of suite.json (`posattn-suite/1`), documented in docs/results_schema.md."""

import json
from typing import Literal

from pydantic import Field

from posattn.comparison.results_part import Part
from posattn.comparison.results_schema import MetricInfo, Statement
from posattn.comparison.statistics import PairedDifference, Summary
from posattn.comparison.verdicts import Judgement

SUITE_SCHEMA: Literal["posattn-suite/1"] = "posattn-suite/1"

TaskState = Literal["complete", "incomplete", "not started"]
Outcome = Literal["held", "mixed", "broken", "not tested"]


class SuiteInfo(Part):
    """What was planned, and how much of it is done; `arms` are those of any task, in order."""

    name: str
    title: str | None
    question: str | None
    description: str | None
    notes: str | None
    baseline: str
    arms: list[str]
    tasks_planned: int
    tasks_complete: int
    runs_planned: int
    runs_finished: int


class Interval(Part):
    """A number with its 95 % interval; the interval is null where no task has two runs."""

    value: float
    low: float | None
    high: float | None


class Solved(Part):
    """How many of the `n` runs with a score, of all `runs`, solved the task; exact 95 % interval."""

    solved: int
    n: int
    runs: int
    low: float
    high: float


class TaskArm(Part):
    """One arm in one task; `states` are those of runs that did not finish, by seed."""

    name: str
    summary: Summary
    values: dict[int, float | None]
    states: dict[int, str]
    recipe_digest: str | None
    solved: Solved | None = None


class TaskProbe(Part):
    """What a task probes: accuracy of guessing, and from where a run counts as solved."""

    name: str
    question: str
    chance: float
    solved: float


class TaskResult(Part):
    """One task: its own study, score by arm, and where its report is. `broken` are rules of control."""

    name: str
    title: str | None
    question: str | None
    folder: str
    state: TaskState
    reason: str | None
    broken: list[str]
    seeds: list[int]
    runs_planned: int
    runs_finished: int
    metric: MetricInfo | None
    left_out: dict[str, str]
    arms: list[TaskArm]
    probe: TaskProbe | None = None


class TaskContrast(Part):
    """`first - second` on the score of one task; judged in one family over all arms and tasks."""

    task: str
    first: str
    second: str
    difference: PairedDifference
    judgement: Judgement


class AggregateArm(Part):
    """One arm over all tasks that are averaged; null with the reason where it lacks a task."""

    name: str
    runs: int
    unfinished: int
    iqm: Interval | None
    improvement: Interval | None
    profile: list[float] | None
    reason: str | None = None


class Aggregate(Part):
    """Scores of one kind over tasks; `tasks` is empty where nothing is averaged, with the reason.

    `left_out` are tasks whose score is of another kind. `thresholds` are those of the profiles.
    """

    kind: str
    tasks: list[str]
    left_out: dict[str, str]
    resamples: int
    thresholds: list[float]
    arms: list[AggregateArm]
    reason: str | None = None


class TaskPrediction(Part):
    """One prediction from the maths, and what the seeds showed."""

    task: str
    arm: str
    score: str
    at_least: float | None
    at_most: float | None
    because: str
    values: dict[int, float | None]
    in_range: int
    n: int
    verdict: Outcome


class SuiteResults(Part):
    """All that a suite found; the content of suite.json."""

    format: Literal["posattn-suite/1"] = Field(default=SUITE_SCHEMA, alias="schema")
    posattn_version: str
    suite: SuiteInfo
    answer: list[Statement]
    tasks: list[TaskResult]
    contrasts: list[TaskContrast]
    aggregate: Aggregate
    predictions: list[TaskPrediction]
    limits: list[str]

    @property
    def complete(self) -> bool:
        """Return whether every run of every task has ended, well or not."""
        return all(task.state == "complete" for task in self.tasks)

    def task(self, name: str) -> TaskResult:
        """Return the task of this name."""
        return next(task for task in self.tasks if task.name == name)

    def to_json(self) -> str:
        """Return strict JSON; a number that is not finite raises ValueError."""
        return json.dumps(
            self.model_dump(mode="json"), allow_nan=False, ensure_ascii=False, indent=1
        )
