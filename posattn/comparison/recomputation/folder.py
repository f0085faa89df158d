"""`recompute(out)`: the report made anew from plan.json and runs/, compared file by file."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from posattn.comparison.recomputation.compare import compare_json, compare_text
from posattn.comparison.recomputation.runs import disagreements_in
from posattn.comparison.report import write_report
from posattn.comparison.study_files import read_json, read_study
from posattn.errors import DataError
from posattn.recipe.schema import data_digest

RESULTS = "results.json"
DATA_SUFFIXES = (".csv", ".tex")
IGNORED = ("posattn_version",)


@dataclass(frozen=True)
class Recomputed:
    """How a folder compares with what its runs say; `differences` is empty where all is equal."""

    folder: Path
    files: int
    runs: int
    differences: tuple[str, ...]


def recompute(out: Path) -> Recomputed:
    """Return how the report in `out` compares with one made anew; nothing in `out` is changed.

    results.json and the data behind every figure and table are compared, numbers up to rounding;
    the files of each run are compared with each other. Raises `RecipeError` for a folder that is no
    study, `DataError` for a file that cannot be read.
    """
    study = read_study(out)
    found = [text for run in study.runs for text in disagreements_in(run, out)]
    found += _digests(out / "plan.json")
    with TemporaryDirectory(prefix="posattn-check-") as name:
        made = Path(name)
        write_report(out, into=made)
        files = compared_files(made, RESULTS)
        for path in files:
            found += differences(out, made, path)
        found += _left_over(out, files)
    return Recomputed(out, len(files), len(study.runs), tuple(found))


def compared_files(made: Path, results: str) -> list[str]:
    """Return the files that hold numbers, relative to the folder, the results first."""
    data = [p for p in made.rglob("*") if p.is_file() and p.suffix in DATA_SUFFIXES]
    return [results, *sorted(path.relative_to(made).as_posix() for path in data)]


def differences(out: Path, made: Path, path: str) -> list[str]:
    """Return where the file `path` of the folder differs from the one made anew.

    Raises `DataError` where it cannot be read.
    """
    if not (out / path).is_file():
        return [f"{path}: the folder has no such file; write the report again"]
    try:
        if path.endswith(".json"):
            found = list(compare_json(out / path, made / path, IGNORED))
        else:
            found = list(compare_text(out / path, made / path))
    except ValueError as error:
        raise DataError(f"{out / path} cannot be read: {error}") from error
    return [f"{path}: {text}" for text in found]


def _left_over(out: Path, files: list[str]) -> Iterator[str]:
    """Yield data files that lie beside those compared and that these runs do not give."""
    folders = {Path(path).parent for path in files} - {Path()}
    for folder in sorted(folders):
        for path in sorted((out / folder).glob("*.csv")):
            name = path.relative_to(out).as_posix()
            if name not in files:
                yield f"{name}: these runs give no such file; it is left from an earlier report"


def _digests(plan: Path) -> Iterator[str]:
    """Yield the arms whose recipe in plan.json is not the one that its digest was taken of."""
    content: dict[str, Any] = read_json(plan, dict[str, Any])
    for arm in content["arms"]:
        recipe, digest = arm.get("recipe"), arm.get("recipe_digest")
        if recipe and digest and data_digest(recipe) != digest:
            yield f"plan.json: the recipe of {arm['name']} does not have the digest stored with it"
