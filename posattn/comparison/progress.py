"""What a running study tells its caller: the state of each run, counts, and the time that is left."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from posattn.comparison.plan import PlannedRun

Stage = Literal[
    "data",
    "self-test",
    "matching",
    "tuning",
    "runs",
    "control",
    "measurements",
    "report",
    "done",
]
RunState = Literal[
    "waiting", "training", "evaluating", "finished", "diverged", "failed", "killed", "interrupted"
]

ENDED = ("finished", "diverged", "failed", "killed")
EVENTS_PER_SECOND = 5.0
EVALUATION_SHARE = 0.15
"""What evaluating a run costs, roughly, as a part of its training; for the time left only."""


@dataclass(frozen=True)
class RunProgress:
    """How far one run is. `process` is the id of the process that works on it, if one does."""

    arm: str
    seed: int
    state: RunState
    step: int = 0
    steps: int = 0
    loss: float | None = None
    tokens_per_second: float = 0.0
    reason: str | None = None
    process: int | None = None

    @property
    def share(self) -> float:
        """Return the part of the run that is done, from 0 to 1."""
        if self.state in ENDED:
            return 1.0
        part = self.step / self.steps if self.steps else 0.0
        return min(part, 1.0) / (1.0 + EVALUATION_SHARE)


@dataclass(frozen=True)
class SuiteShare:
    """Which task of a suite a study is, and how far the runs of all tasks are.

    `number` counts tasks from 1; `eta_seconds` is for all tasks, None before anything is known.
    """

    suite: str
    task: str
    number: int
    tasks: int
    runs_ended: int
    runs: int
    eta_seconds: float | None = None


@dataclass(frozen=True)
class StudyProgress:
    """How far a study is; `eta_seconds` is for the runs, None before anything is known.

    `suite` is there where the study is one task of several.
    """

    study: str
    stage: Stage
    message: str
    runs: tuple[RunProgress, ...]
    seconds: float
    eta_seconds: float | None = None
    suite: SuiteShare | None = None

    @property
    def total(self) -> int:
        """Return the number of planned runs."""
        return len(self.runs)

    @property
    def finished(self) -> int:
        """Return the number of runs that ended as planned."""
        return sum(run.state == "finished" for run in self.runs)

    @property
    def failed(self) -> int:
        """Return the number of runs that ended otherwise."""
        return sum(run.state in ENDED and run.state != "finished" for run in self.runs)


ShowProgress = Callable[[StudyProgress], None]


class Throttle:
    """Lets a call through at most `EVENTS_PER_SECOND` times a second."""

    def __init__(self) -> None:
        """Let the first call through."""
        self._next = 0.0

    def due(self) -> bool:
        """Return whether enough time has passed since the last time this was true."""
        now = time.monotonic()
        if now < self._next:
            return False
        self._next = now + 1.0 / EVENTS_PER_SECOND
        return True


class ProgressBoard:
    """Collects the state of all runs and shows it: at every change of state, else now and then."""

    def __init__(self, study: str, runs: Sequence[PlannedRun], show: ShowProgress | None) -> None:
        """Start with all runs waiting."""
        self._study = study
        self._runs = {run.key: _waiting(run) for run in runs}
        self._show = show
        self._throttle = Throttle()
        self._stage: Stage = "data"
        self._message = ""
        self._started = time.monotonic()
        self._runs_started = self._started
        self._share_at_start = 0.0

    def enter(self, stage: Stage, message: str = "") -> None:
        """Begin a stage."""
        self._stage, self._message = stage, message
        if stage == "runs":
            self._runs_started = time.monotonic()
            self._share_at_start = self._share()
        self._emit()

    def say(self, message: str) -> None:
        """Tell what is done now, within a stage."""
        self._message = message
        if self._throttle.due():
            self._emit()

    def update(self, key: str, **changes: Any) -> None:
        """Change what is known of one run."""
        before = self._runs[key]
        self._runs[key] = replace(before, **changes)
        if self._runs[key].state != before.state or self._throttle.due():
            self._emit()

    def current(self) -> StudyProgress:
        """Return the present state of the study."""
        return StudyProgress(
            study=self._study,
            stage=self._stage,
            message=self._message,
            runs=tuple(self._runs.values()),
            seconds=time.monotonic() - self._started,
            eta_seconds=self._eta(),
        )

    def _emit(self) -> None:
        if self._show is not None:
            self._show(self.current())

    def _share(self) -> float:
        return sum(run.share for run in self._runs.values())

    def _eta(self) -> float | None:
        if self._stage != "runs":
            return None
        done = self._share() - self._share_at_start
        if done <= 0.0:
            return None
        left = len(self._runs) - self._share()
        return left * (time.monotonic() - self._runs_started) / done


def _waiting(run: PlannedRun) -> RunProgress:
    return RunProgress(run.arm, run.seed, "waiting", steps=run.recipe.train.steps or 0)
