"""How far a suite is: which task runs, and what is left over all tasks."""

import time
from dataclasses import replace
from pathlib import Path

from posattn.comparison.execute import is_done
from posattn.comparison.plan import StudyPlan
from posattn.comparison.progress import (
    ENDED,
    RunProgress,
    ShowProgress,
    StudyProgress,
    SuiteShare,
)

RunOfTask = tuple[str, str, int]


class SuiteBoard:
    """Adds to the progress of each task what is left of the whole suite.

    The time left is that of the steps left at the pace of this call, so it is rough where a step of
    one task takes longer than one of another, and where tasks are tuned: trials are not counted.
    """

    def __init__(
        self, suite: str, plans: dict[str, StudyPlan], folders: dict[str, Path], show: ShowProgress
    ) -> None:
        """Start with what earlier calls have done."""
        self._suite = suite
        self._show = show
        self._tasks = list(plans)
        self._steps: dict[RunOfTask, int] = {
            (task, run.arm, run.seed): run.recipe.train.steps or 1
            for task, plan in plans.items()
            for run in plan.runs
        }
        self._before = {
            (task, run.arm, run.seed)
            for task, plan in plans.items()
            for run in plan.runs
            if is_done(folders[task] / run.folder)
        }
        self._started = time.monotonic()

    def showing(self, task: str) -> ShowProgress:
        """Return what shows the progress of one task."""
        return lambda progress: self._show(replace(progress, suite=self._share(task, progress)))

    def _share(self, task: str, progress: StudyProgress) -> SuiteShare:
        index = self._tasks.index(task)
        past, coming = self._tasks[:index], self._tasks[index + 1 :]
        now = {(task, run.arm, run.seed): run for run in progress.runs}
        now = {run: found for run, found in now.items() if run in self._steps}  # trials are none
        ended = [run for run in self._steps if run[0] in past]
        ended += [run for run in self._before if run[0] in coming]
        return SuiteShare(
            suite=self._suite,
            task=task,
            number=index + 1,
            tasks=len(self._tasks),
            runs_ended=len(ended) + sum(run.state in ENDED for run in now.values()),
            runs=len(self._steps),
            eta_seconds=self._eta(past, coming, now),
        )

    def _eta(
        self, past: list[str], coming: list[str], now: dict[RunOfTask, RunProgress]
    ) -> float | None:
        new = {run: steps for run, steps in self._steps.items() if run not in self._before}
        shares = {run: progress.share for run, progress in now.items()}
        done = float(sum(steps for run, steps in new.items() if run[0] in past))
        done += sum(steps * shares[run] for run, steps in new.items() if run in shares)
        left = float(sum(steps for run, steps in new.items() if run[0] in coming))
        left += sum(steps * (1 - shares[run]) for run, steps in new.items() if run in shares)
        if done <= 0:
            return None
        return left * (time.monotonic() - self._started) / done
