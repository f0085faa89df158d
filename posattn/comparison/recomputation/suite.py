"""`recompute_suite(out)`: every task from its runs, and what is said over all tasks from theirs."""

import shutil
from pathlib import Path
from tempfile import TemporaryDirectory

from posattn.comparison.plan import SUITE_PLAN
from posattn.comparison.recomputation.folder import (
    RESULTS,
    Recomputed,
    compared_files,
    differences,
    recompute,
)
from posattn.comparison.suite.report import write_suite_report

SUITE = "suite.json"


def recompute_suite(out: Path) -> Recomputed:
    """Return how a suite's reports compare with ones made anew; nothing in `out` is changed.

    What is said over all tasks is compared only where every task has its results.
    """
    tasks = [recompute(plan.parent) for plan in sorted(out.glob("tasks/*/plan.json"))]
    found = [
        f"{task.folder.relative_to(out).as_posix()}/{text}"
        for task in tasks
        for text in task.differences
    ]
    files = sum(task.files for task in tasks)
    if all((task.folder / RESULTS).is_file() for task in tasks):
        with TemporaryDirectory(prefix="posattn-check-") as name:
            made = Path(name)
            _copy_results(out, made)
            write_suite_report(made)
            over_all = [path for path in compared_files(made, SUITE) if not _of_a_task(path)]
            found += [text for path in over_all for text in differences(out, made, path)]
            files += len(over_all)
    return Recomputed(out, files, sum(task.runs for task in tasks), tuple(found))


def _copy_results(out: Path, into: Path) -> None:
    """Copy what a suite's report is made of: its plan, and plan and results of every task."""
    paths = [out / SUITE_PLAN, *out.glob("tasks/*/plan.json"), *out.glob(f"tasks/*/{RESULTS}")]
    for path in paths:
        if path.is_file():
            target = into / path.relative_to(out)
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, target)


def _of_a_task(path: str) -> bool:
    return path.startswith("tasks/")
