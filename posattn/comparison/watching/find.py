"""Which runs a folder holds: those of a study, of the studies of a suite, of tuning, or single ones."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from posattn.comparison.study_files import read_yaml
from posattn.errors import PosattnError
from posattn.training.durable import read_json
from posattn.training.run_folder import RunFolder


@dataclass(frozen=True)
class FoundRun:
    """A run of which there is a folder, or a plan. `group` is its study within a suite or tuning.

    `seed` is None for a run outside a study; `evaluates` says that evaluations follow the training.
    """

    group: str
    arm: str
    seed: int | None
    folder: Path
    steps: int | None
    evaluates: bool

    @property
    def name(self) -> str:
        """Return group, arm and seed as one path."""
        seed = "" if self.seed is None else f"seed-{self.seed}"
        return "/".join(part for part in (self.group, self.arm, seed) if part)


def find_runs(folder: Path) -> list[FoundRun]:
    """Return all runs in `folder`, in the order of its plans; empty where there are none yet."""
    found = list(_studies(folder, ""))
    if found or (folder / "plan.json").exists():
        return found
    if _holds_run(folder):
        return [_single(folder, folder.resolve().name)]
    below = [path for pattern in ("*", "*/*") for path in sorted(folder.glob(pattern))]
    return [
        _single(path, path.relative_to(folder).as_posix()) for path in below if _holds_run(path)
    ]


def _studies(folder: Path, group: str) -> Iterator[FoundRun]:
    plan = _readable(folder / "plan.json")
    if plan is not None:
        yield from _planned(folder, group, plan)
    if (folder / "tuning").is_dir():
        yield from _studies(folder / "tuning", f"{group}/tuning".strip("/"))
    for task in sorted((folder / "tasks").glob("*")):
        yield from _studies(task, f"{group}/{task.name}".strip("/"))


def _planned(folder: Path, group: str, plan: dict[str, Any]) -> Iterator[FoundRun]:
    recipes = {arm.get("name"): arm.get("recipe") or {} for arm in plan.get("arms", [])}
    for run in plan.get("runs", []):
        steps = (recipes.get(run["arm"], {}).get("train") or {}).get("steps")
        place = folder / run["folder"]
        yield FoundRun(group, run["arm"], run["seed"], place, steps, evaluates=True)


def _readable(path: Path) -> dict[str, Any] | None:
    """Return the plan, or None where it is not there, or not whole at this moment."""
    try:
        return read_json(path)
    except (OSError, ValueError):
        return None


def _holds_run(folder: Path) -> bool:
    files = RunFolder(folder)
    return folder.is_dir() and (files.status_file.exists() or files.metrics.exists())


def _single(folder: Path, name: str) -> FoundRun:
    try:
        recipe = read_yaml(RunFolder(folder).recipe) or {}
    except PosattnError:
        recipe = {}
    return FoundRun("", name, None, folder, (recipe.get("train") or {}).get("steps"), False)
