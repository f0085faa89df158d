"""The folder of a suite, read: which tasks there are, and the results of each."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pydantic import Field

from posattn.comparison.plan import SUITE_PLAN
from posattn.comparison.report import write_report
from posattn.comparison.results_schema import Results
from posattn.comparison.stored import StoredModel
from posattn.comparison.study_files import read_json
from posattn.errors import RecipeError


class StoredTask(StoredModel):
    """A task of suite_plan.json."""

    name: str
    title: str = ""
    question: str = ""
    folder: str
    left_out: dict[str, str] = Field(default_factory=dict)


class StoredSuite(StoredModel):
    """suite_plan.json; or, where there is none, what the folders of tasks show."""

    suite: str
    title: str = ""
    question: str = ""
    description: str = ""
    notes: str = ""
    baseline: str | None = None
    tasks: list[StoredTask] = Field(default_factory=list)


@dataclass(frozen=True)
class SuiteFiles:
    """All tasks of a suite, with the results of those that have begun."""

    plan: StoredSuite
    results: dict[str, Results] = field(default_factory=dict)


def is_suite(folder: Path) -> bool:
    """Return whether a folder is that of a suite: planned as one, or with studies in tasks/."""
    if (folder / SUITE_PLAN).is_file():
        return True
    return not (folder / "plan.json").is_file() and any(folder.glob("tasks/*/plan.json"))


def read_suite(out: Path) -> SuiteFiles:
    """Return the tasks in `out`, planned ones first; a task's report is written where it is stale.

    Tasks may have been run one by one. Raises `RecipeError` for a folder without tasks.
    """
    path = out / SUITE_PLAN
    plan = read_json(path, StoredSuite) if path.is_file() else StoredSuite(suite=out.resolve().name)
    known = {task.name for task in plan.tasks}
    others = sorted(p.parent.name for p in out.glob("tasks/*/plan.json"))
    further = [StoredTask(name=n, folder=f"tasks/{n}") for n in others if n not in known]
    if not (plan.tasks or further):
        raise RecipeError(f"{out} holds no tasks; give the --out folder of a study with tasks")
    plan = plan.model_copy(update={"tasks": [*plan.tasks, *further]})
    results = {}
    for task in plan.tasks:
        if (out / task.folder / "plan.json").is_file():
            results[task.name] = _read_task(out / task.folder)
    return SuiteFiles(plan, results)


def _read_task(folder: Path) -> Results:
    stored = folder / "results.json"
    if _is_stale(stored, folder):
        write_report(folder)
    return read_results(stored)


def read_results(path: Path) -> Results:
    """Return a results.json, or raise `DataError` with its first fault."""
    content: Any = read_json(path, Results)
    assert isinstance(content, Results)
    return content


def _is_stale(stored: Path, folder: Path) -> bool:
    """Return whether a run has changed since the results were written."""
    if not stored.is_file():
        return True
    written = stored.stat().st_mtime_ns
    found = [folder / "plan.json", *folder.glob("runs/*/*/status.json")]
    found += folder.glob("runs/*/*/evaluations.json")
    return any(path.stat().st_mtime_ns > written for path in found)
