"""The state of runs at one moment."""

from collections import Counter
from dataclasses import asdict, dataclass
from typing import Any

from posattn.comparison.progress import ENDED

LIVE = ("training", "evaluating")


@dataclass(frozen=True)
class RunSnapshot:
    """How far one run is. `silent_seconds` is the time since its files last changed.

    `losses` are those of training by step, `evaluation_loss` and `evaluation_step` the last on
    validation text.
    """

    name: str
    group: str
    arm: str
    seed: int | None
    state: str
    step: int
    steps: int | None
    tokens: int
    loss: float | None
    tokens_per_second: float | None
    steps_per_second: float | None
    seconds_left: float | None
    evaluation_step: int | None
    evaluation_loss: float | None
    silent_seconds: float | None
    silent: bool
    reason: str | None
    losses: tuple[float, ...]

    def to_json(self) -> dict[str, Any]:
        """Return everything but the curve."""
        return {key: value for key, value in asdict(self).items() if key != "losses"}


@dataclass(frozen=True)
class Snapshot:
    """All runs of a folder, or why there are none; `reports` are the reports that lie there."""

    folder: str
    waiting_for: str | None
    runs: tuple[RunSnapshot, ...]
    reports: tuple[str, ...]
    notes: tuple[str, ...]

    @property
    def counts(self) -> dict[str, int]:
        """Return how many runs are in each state."""
        return dict(Counter(run.state for run in self.runs))

    @property
    def ended(self) -> bool:
        """Return whether every run has ended, well or not."""
        return bool(self.runs) and all(run.state in ENDED for run in self.runs)

    @property
    def seconds_left(self) -> float | None:
        """Return the time that training still takes at the present pace; None if it is unknown."""
        pace = sum(run.steps_per_second or 0.0 for run in self.runs if run.state == "training")
        open_runs = [run for run in self.runs if run.state not in ENDED]
        if not pace or any(run.steps is None for run in open_runs):
            return None
        return sum(max(0, (run.steps or 0) - run.step) for run in open_runs) / pace

    def to_json(self) -> dict[str, Any]:
        """Return the snapshot for other programs."""
        return {
            "folder": self.folder,
            "waiting_for": self.waiting_for,
            "ended": self.ended,
            "counts": self.counts,
            "seconds_left": self.seconds_left,
            "reports": list(self.reports),
            "notes": list(self.notes),
            "runs": [run.to_json() for run in self.runs],
        }
