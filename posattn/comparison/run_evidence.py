"""What a run folder recorded that control compares: recipe, data, starting values, batches, conditions."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from posattn.errors import DataError
from posattn.recipe.reader import read_file
from posattn.recipe.scalars import plain
from posattn.training.durable import read_json
from posattn.training.metrics import read_metrics
from posattn.training.run_folder import RunFolder

EVALUATIONS = "evaluations.json"

CONDITIONS = (
    "threads",
    "device",
    "python",
    "versions",
    "blas",
    "cpu_capability",
    "deterministic",
)
"""The parts of environment.json that can change a number or a time."""


@dataclass(frozen=True)
class RunEvidence:
    """The records of one run; what it did not write is empty. `planned` is the plan's recipe."""

    arm: str
    seed: int
    planned: Mapping[str, Any]
    recipe: Mapping[str, Any] | None = None
    status: Mapping[str, Any] = field(default_factory=dict)
    data: Mapping[str, Any] = field(default_factory=dict)
    parameters: Mapping[str, Any] = field(default_factory=dict)
    environment: Mapping[str, Any] = field(default_factory=dict)
    batches: Mapping[int, str] = field(default_factory=dict)
    evaluations: Mapping[str, Any] = field(default_factory=dict)
    attention: Mapping[str, Any] = field(default_factory=dict)

    @property
    def finished(self) -> bool:
        """Return whether the run ended as planned."""
        return self.status.get("state") == "finished"

    @property
    def tensors(self) -> Mapping[str, Any]:
        """Return shape and digest at step 0 of each parameter by name."""
        found: Mapping[str, Any] = self.parameters.get("tensors", {})
        return found

    @property
    def conditions(self) -> dict[str, Any]:
        """Return what must be equal for numbers and times to be comparable."""
        return {key: self.environment[key] for key in CONDITIONS if key in self.environment}

    @property
    def backend(self) -> str:
        """Return what computed attention, and in evaluation if that differs; empty if unrecorded."""
        training = " and ".join(self.attention.get("computed", []))
        evaluating = str(self.evaluations.get("conditions", {}).get("backend") or "")
        if not training or not evaluating or training == evaluating:
            return training or evaluating
        return f"{training} (in evaluation {evaluating})"

    @property
    def graphs(self) -> int | None:
        """Return how many graphs torch.compile made since the run was last started, if any did."""
        found: int | None = self.status.get("graphs")
        return found


def read_evidence(folder: Path, arm: str, seed: int, planned: Mapping[str, Any]) -> RunEvidence:
    """Return what the run in `folder` has recorded so far; `DataError` if a record is damaged."""
    files = RunFolder(folder)
    with _readable(files.metrics, folder):
        lines = [line for line in read_metrics(files.metrics, "train") if "batches" in line]
        batches = {int(line["step"]): str(line["batches"]) for line in lines}
    return RunEvidence(
        arm=arm,
        seed=seed,
        planned=planned,
        recipe=_recipe(files.recipe),
        status=_read(files.status_file),
        data=_read(files.data),
        parameters=_read(files.parameters),
        environment=_read(files.environment),
        attention=_read(files.attention),
        batches=batches,
        evaluations=_read(folder / EVALUATIONS, folder / EVALUATIONS),
    )


def _recipe(path: Path) -> dict[str, Any] | None:
    if not path.is_file():
        return None
    data = plain(read_file(path).data)
    assert isinstance(data, dict)
    return data


def _read(path: Path, made_again: Path | None = None) -> dict[str, Any]:
    with _readable(path, made_again or path.parent):
        return dict(read_json(path)) if path.is_file() else {}


@contextmanager
def _readable(path: Path, made_again: Path) -> Iterator[None]:
    """Turn a damaged record into a `DataError` that names what to delete to have it made again."""
    try:
        yield
    except (ValueError, KeyError, TypeError) as error:
        raise DataError(
            f"{path} is damaged ({error}); delete {made_again} and run the same command again to "
            "have it made anew"
        ) from error
