"""`BenchResult`: what was measured, as bench.json holds it."""

import json
import statistics
from pathlib import Path
from typing import Any, Literal

from pydantic import ValidationError

from posattn.bench.plan import BenchPlan, Cell, Target
from posattn.config import FrozenConfig, Many, Text
from posattn.errors import PosattnError
from posattn.training.config import Precision
from posattn.training.durable import write_json

FILE = "bench.json"


class Measured(FrozenConfig):
    """One contestant in one cell; `seconds` has one number per round, the same rounds for all."""

    name: Text
    library: Text
    attention: Text  # what computed it, such as the backend that `auto` chose
    precision: Precision
    compiled: bool
    same_function: bool  # false: another mechanism at the same size
    difference: float | None  # largest, between its states and those of the first contestant
    first_seconds: float  # the first call, with whatever is compiled or prepared in it
    seconds: Many[float]
    peak_memory_bytes: int | None = None

    def median(self) -> float:
        """Return the median over the rounds."""
        return statistics.median(self.seconds)

    def quartiles(self) -> tuple[float, float]:
        """Return the first and the third quartile over the rounds."""
        if len(self.seconds) == 1:
            return self.seconds[0], self.seconds[0]
        cuts = statistics.quantiles(self.seconds, n=4, method="inclusive")
        return cuts[0], cuts[2]

    def times_as_fast_as(self, other: "Measured") -> float:
        """Return the median over the rounds of the other's time divided by this one's."""
        pairs = zip(other.seconds, self.seconds, strict=True)
        return statistics.median(theirs / mine for theirs, mine in pairs)


class Case(FrozenConfig):
    """One architecture in one cell, and why some could not be measured."""

    subject: Text
    title: Text
    cell: Cell
    contestants: Many[Measured]
    refused: dict[str, str]

    def reference(self) -> Measured:
        """Return what the others are compared with: the first rival, or else the first of ours.

        With texts of mixed length it is the first of ours, which computes padding as well.
        """
        if self.cell.mixed is not None:
            return self.contestants[0]
        rivals = [one for one in self.contestants if one.library != "posattn"]
        return (rivals or list(self.contestants))[0]

    def best_of_ours(self, precision: Precision = "float32", beside: str = "") -> Measured | None:
        """Return the fastest of ours that computes the same function, uncompiled; not that of a name."""
        ours = [
            one
            for one in self.contestants
            if one.library == "posattn"
            and one.same_function
            and one.precision == precision
            and one.name != beside
        ]
        return min((one for one in ours if not one.compiled), key=Measured.median, default=None)

    def get(self, name: str) -> Measured | None:
        """Return the contestant of a name, if it was measured."""
        return next((one for one in self.contestants if one.name == name), None)


class BenchResult(FrozenConfig):
    """A benchmark with its plan and its conditions."""

    format: Literal[1] = 1
    plan: BenchPlan
    conditions: dict[str, Any]
    cases: Many[Case]
    interrupted: bool = False

    def reached(self, target: Target) -> float | None:
        """Return how many times as fast ours is as what the target names; None if not measured."""
        for case in self.cases:
            if case.subject == target.subject and case.cell == target.cell:
                rival = case.get(target.against)
                best = case.best_of_ours(target.precision, beside=target.against)
                if best is not None and rival is not None:
                    return best.times_as_fast_as(rival)
        return None


def save_result(result: BenchResult, folder: Path) -> Path:
    """Write bench.json into the folder and return its path."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / FILE
    write_json(path, result.model_dump(mode="json"))
    return path


def load_result(path: Path) -> BenchResult:
    """Return the result in a bench.json, or in the folder that holds one."""
    path = path / FILE if path.is_dir() else path
    try:
        data = path.read_text(encoding="utf-8")
        return BenchResult.model_validate(json.loads(data))
    except OSError as error:
        raise PosattnError(f"no benchmark can be read at {path}: {error.strerror}") from error
    except (ValidationError, ValueError) as error:
        raise PosattnError(
            f"{path} is not a benchmark of this version of posattn: {error}; measure anew with "
            "posattn bench"
        ) from error
