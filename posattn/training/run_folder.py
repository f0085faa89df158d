"""The layout of a run folder, portable names, and the status file."""

import os
import re
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal

from posattn.errors import CheckpointError, RecipeError
from posattn.training.durable import read_json, remove_temporary, write_json

State = Literal["running", "finished", "diverged", "failed", "interrupted", "killed"]

MAX_NAME = 100
_PORTABLE = re.compile(r"[A-Za-z0-9._-]+")
_RESERVED = {"CON", "PRN", "AUX", "NUL"} | {f"{p}{n}" for p in ("COM", "LPT") for n in range(10)}


def check_run_name(name: str) -> str:
    """Return `name` if every system can use it as a folder name, else raise `RecipeError`."""
    problem = None
    if not name or len(name) > MAX_NAME:
        problem = f"it has {len(name)} characters; 1 to {MAX_NAME} are allowed"
    elif not _PORTABLE.fullmatch(name):
        bad = sorted({c for c in name if not _PORTABLE.fullmatch(c)})
        problem = f"it contains {', '.join(map(repr, bad))}; allowed are letters A-Z a-z, 0-9 . _ -"
    elif name.split(".")[0].upper() in _RESERVED:
        problem = "Windows keeps this name for a device"
    elif name.endswith("."):
        problem = "it ends in a dot"
    if problem:
        shown = name if len(name) <= 40 else f"{name[:37]}..."
        raise RecipeError(f"the run name {shown!r} cannot be used as a folder name: {problem}")
    return name


def check_out(folder: Path) -> None:
    """Raise `RecipeError`, before any work is done, if nothing can be written into `folder`."""
    place = folder.absolute()
    while not os.path.lexists(place) and place != place.parent:
        place = place.parent
    if not place.is_dir():
        raise RecipeError(f"{folder} cannot be the output folder: {place} is not a folder")
    if not os.access(place, os.W_OK | os.X_OK):
        raise RecipeError(
            f"{folder} cannot be the output folder: {place} does not let you write; choose another "
            "--out, or change its permissions"
        )


@dataclass(frozen=True)
class Status:
    """What status.json says of a run; `resumed` counts how often it was continued.

    `graphs` are those that torch.compile has made since the run was last started.
    """

    state: State
    step: int = 0
    tokens: int = 0
    targets: int = 0
    skipped: int = 0
    reason: str | None = None
    resumed: int = 0
    seconds: float = 0.0
    notes: list[str] = field(default_factory=list)
    graphs: int | None = None


@dataclass(frozen=True)
class RunFolder:
    """Paths within one run's folder."""

    path: Path

    @property
    def recipe(self) -> Path:
        """The resolved recipe."""
        return self.path / "recipe.yaml"

    @property
    def environment(self) -> Path:
        """Versions, machine, threads, seeds, git state."""
        return self.path / "environment.json"

    @property
    def status_file(self) -> Path:
        """How far the run is."""
        return self.path / "status.json"

    @property
    def metrics(self) -> Path:
        """One JSON object a line, for training and evaluation."""
        return self.path / "metrics.jsonl"

    @property
    def parameters(self) -> Path:
        """Counts, and group and initial digest of each parameter."""
        return self.path / "parameters.json"

    @property
    def attention(self) -> Path:
        """The backend that the recipe names, and those that computed attention."""
        return self.path / "attention.json"

    @property
    def data(self) -> Path:
        """Where the text came from."""
        return self.path / "data.json"

    @property
    def checkpoints(self) -> Path:
        """The folder of checkpoints."""
        return self.path / "checkpoints"

    @property
    def final(self) -> Path:
        """The trained model with its recipe and tokenizer."""
        return self.path / "final"

    def holds_run(self) -> bool:
        """Whether a run was ever started here."""
        return any(
            p.exists() for p in (self.recipe, self.status_file, self.checkpoints, self.final)
        )

    def create(self) -> None:
        """Make the folder and delete what an ended process left unfinished in it."""
        self.path.mkdir(parents=True, exist_ok=True)
        remove_temporary(self.path)

    def read_status(self) -> Status | None:
        """Return the status, or None if the run never wrote one."""
        if not self.status_file.exists():
            return None
        try:
            return _read_status(read_json(self.status_file))
        except (ValueError, TypeError) as error:
            raise CheckpointError(
                f"{self.status_file} is damaged ({error}); delete this file to go on from the "
                "newest checkpoint, or the run folder to start anew"
            ) from error

    def write_status(self, status: Status) -> None:
        """Replace the status at once."""
        write_json(self.status_file, asdict(status))


def _read_status(content: dict[str, Any]) -> Status:
    known = Status.__dataclass_fields__
    return Status(**{key: value for key, value in content.items() if key in known})
