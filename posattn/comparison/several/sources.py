"""The studies to compare: their results and recipes, read from folders of studies and of suites."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from posattn.comparison.results import collect
from posattn.comparison.results_schema import Results
from posattn.comparison.study_files import read_json
from posattn.comparison.suite.files import is_suite, read_suite
from posattn.errors import RecipeError
from posattn.recipe.difference import flatten


@dataclass(frozen=True)
class Source:
    """One study: how it is called here, where it is, its results and its plan as stored."""

    label: str
    folder: Path
    results: Results
    plan: dict[str, Any]

    def recipe(self, arm: str) -> dict[str, Any] | None:
        """Return the resolved recipe of an arm by dotted path, without its name, if it is stored."""
        stored = next(item.get("recipe") for item in self.plan["arms"] if item["name"] == arm)
        if not stored:
            return None
        leaves = flatten(stored).items()
        return {path: value for path, value in leaves if path not in ("name", "description")}


def read_sources(folders: Sequence[Path]) -> list[Source]:
    """Return the studies in these folders; a suite gives one for each task that has begun.

    Raises `RecipeError` for a folder that is none or is given twice, `DataError` for a damaged one.
    """
    resolved = [folder.resolve() for folder in folders]
    twice = [
        str(f) for f, place in zip(folders, resolved, strict=True) if resolved.count(place) > 1
    ]
    if twice:
        raise RecipeError(
            f"each folder is given once; more often: {', '.join(dict.fromkeys(twice))}"
        )
    labels = _labels(resolved)
    return [
        source
        for folder, label in zip(folders, labels, strict=True)
        for source in _of(folder, label)
    ]


def _of(folder: Path, label: str) -> list[Source]:
    if not is_suite(folder):
        return [_source(label, folder, collect(folder))]
    return [
        _source(f"{label}/{task}", folder / "tasks" / task, results)
        for task, results in read_suite(folder).results.items()
    ]


def _source(label: str, folder: Path, results: Results) -> Source:
    return Source(label, folder, results, read_json(folder / "plan.json", dict[str, Any]))


def _labels(folders: Sequence[Path]) -> list[str]:
    """Return the shortest ends of the paths that tell the folders apart."""
    for depth in range(1, max(len(folder.parts) for folder in folders) + 1):
        names = ["/".join(folder.parts[-depth:]) for folder in folders]
        if len(set(names)) == len(names):
            return names
    return [str(folder) for folder in folders]
