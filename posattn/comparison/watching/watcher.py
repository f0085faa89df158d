"""`Watcher`: looks at a folder again and again, and reads only what is new in it."""

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from posattn.comparison.run_evidence import EVALUATIONS
from posattn.comparison.watching.find import FoundRun, find_runs
from posattn.comparison.watching.snapshot import LIVE, RunSnapshot, Snapshot
from posattn.errors import PosattnError
from posattn.training.follow import MetricsFollower
from posattn.training.run_folder import RunFolder, Status

PACE_LINES = 20
"""From how many of the newest training lines the pace is taken."""

SILENT_SECONDS = 60.0
SILENT_LINES = 5.0
"""A run is called silent after this long, and this many times its usual time between lines."""


@dataclass
class _Seen:
    """What has been read of one run so far."""

    follower: MetricsFollower
    restarts: int = 0
    training: list[dict[str, Any]] = field(default_factory=list)
    evaluation: dict[str, Any] = field(default_factory=dict)

    def read(self) -> None:
        lines = self.follower.new_lines()
        if self.follower.restarts > self.restarts:
            self.restarts = self.follower.restarts
            self.training, self.evaluation = [], {}
        for line in lines:
            if line.get("kind") == "train":
                self.training.append(line)
            elif line.get("kind") == "evaluation":
                self.evaluation = line


class Watcher:
    """Sees a study, a suite, tuning or single runs in a folder, by their files only."""

    def __init__(self, folder: Path) -> None:
        """Watch `folder`, which need not be there yet."""
        self.folder = folder
        self._seen: dict[Path, _Seen] = {}

    def look(self) -> Snapshot:
        """Return what stands in the files now; a file that is not whole yet is read the next time."""
        found = find_runs(self.folder) if self.folder.is_dir() else []
        runs = tuple(self._run(run) for run in found)
        damaged = sum(seen.follower.damaged for seen in self._seen.values())
        notes = (f"{damaged} lines of metrics.jsonl are damaged and left out",) if damaged else ()
        reports = [path for path in ("report.html", "suite.html") if (self.folder / path).is_file()]
        return Snapshot(str(self.folder), self._missing(found), runs, tuple(reports), notes)

    def _missing(self, found: Sequence[FoundRun]) -> str | None:
        if found:
            return None
        if not self.folder.is_dir():
            return f"there is no folder {self.folder} yet"
        return f"there is no plan.json and no run in {self.folder} yet"

    def _run(self, run: FoundRun) -> RunSnapshot:
        files = RunFolder(run.folder)
        seen = self._seen.setdefault(run.folder, _Seen(MetricsFollower(files.metrics)))
        seen.read()
        status = _status(files)
        state = _state(run, status, bool(seen.training))
        last = seen.training[-1] if seen.training else {}
        step = max(status.step if status else 0, int(last.get("step") or 0))
        steps_pace, tokens_pace = _pace(seen.training)
        quiet = _quiet_seconds(files)
        left = None
        if state == "training" and steps_pace and run.steps:
            left = max(0, run.steps - step) / steps_pace
        losses = [line.get("loss") for line in seen.training]
        return RunSnapshot(
            name=run.name,
            group=run.group,
            arm=run.arm,
            seed=run.seed,
            state=state,
            step=step,
            steps=run.steps,
            tokens=max(status.tokens if status else 0, int(last.get("tokens") or 0)),
            loss=last.get("loss"),
            tokens_per_second=tokens_pace,
            steps_per_second=steps_pace,
            seconds_left=left,
            evaluation_step=seen.evaluation.get("step"),
            evaluation_loss=seen.evaluation.get("loss"),
            silent_seconds=quiet,
            silent=state in LIVE and quiet is not None and quiet > _patience(seen.training),
            reason=status.reason if status else None,
            losses=tuple(loss for loss in losses if loss is not None),
        )


def _status(files: RunFolder) -> Status | None:
    try:
        return files.read_status()
    except (PosattnError, OSError):  # damaged, or gone between two looks
        return None


def _state(run: FoundRun, status: Status | None, has_lines: bool) -> str:
    if status is None:
        return "training" if has_lines else "waiting"
    if status.state == "running":
        return "training"
    if status.state == "finished" and run.evaluates:
        return "finished" if (run.folder / EVALUATIONS).is_file() else "evaluating"
    return status.state


def _pace(training: Sequence[dict[str, Any]]) -> tuple[float | None, float | None]:
    """Return steps and tokens per second over the newest lines."""
    if not training:
        return None, None
    start: dict[str, Any] = {"step": 0, "tokens": 0, "seconds": 0.0}
    first = training[-PACE_LINES] if len(training) >= PACE_LINES else start
    last = training[-1]
    try:
        seconds = last["seconds"] - first["seconds"]
        if seconds <= 0:
            return None, None
        return (last["step"] - first["step"]) / seconds, (
            last["tokens"] - first["tokens"]
        ) / seconds
    except (KeyError, TypeError):
        return None, None


def _patience(training: Sequence[dict[str, Any]]) -> float:
    usual = float(training[-1].get("seconds") or 0.0) / len(training) if training else 0.0
    return max(SILENT_SECONDS, SILENT_LINES * usual)


def _quiet_seconds(files: RunFolder) -> float | None:
    changes = []
    for path in (files.metrics, files.status_file):
        try:
            changes.append(path.stat().st_mtime)
        except OSError:
            continue
    return max(0.0, time.time() - max(changes)) if changes else None
