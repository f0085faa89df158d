"""What a run's folder says of its model: text, end of training, and what a study found."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from posattn.errors import CheckpointError
from posattn.training.durable import read_json
from posattn.training.run_folder import RunFolder


@dataclass(frozen=True)
class RunFacts:
    """Where the model lies, and what is known of how it came about; None where nothing is."""

    model: Path
    data: dict[str, Any] | None = None
    status: dict[str, Any] | None = None
    validation: dict[str, Any] | None = None
    arm: dict[str, Any] | None = None  # of the study's results.json
    contrasts: tuple[dict[str, Any], ...] = ()  # between this arm and others
    limits: tuple[str, ...] = ()  # of the study


def run_facts(folder: Path) -> RunFacts:
    """Return the facts of a run folder, of its `final`, or of any folder that `from_pretrained` takes."""
    folder = folder.absolute()
    run = RunFolder(folder.parent if folder.name == "final" else folder)
    if not run.status_file.is_file():
        if not folder.is_dir():
            raise CheckpointError(
                f"{folder} is no folder; name a run, or what posattn import wrote"
            )
        return RunFacts(folder)
    if not run.final.is_dir():
        raise CheckpointError(
            f"{run.path} has no folder `final`, so the run did not finish; train it to its end first"
        )
    found = _optional(run.path / "evaluations.json") or {}
    arm, contrasts, limits = _study(run.path)
    return RunFacts(
        model=run.final,
        data=_optional(run.data),
        status=_optional(run.status_file),
        validation=found.get("validation"),
        arm=arm,
        contrasts=contrasts,
        limits=limits,
    )


def _study(run: Path) -> tuple[dict[str, Any] | None, tuple[dict[str, Any], ...], tuple[str, ...]]:
    """Return what results.json says of a run that lies in `runs/ARM/seed-N` of a study."""
    if len(run.parents) < 3:
        return None, (), ()
    results = _optional(run.parents[2] / "results.json") or {}
    name = run.parent.name
    arm = next((arm for arm in results.get("arms", []) if arm["name"] == name), None)
    primary = results.get("study", {}).get("primary")
    contrasts = tuple(
        found
        for found in results.get("contrasts", [])
        if name in (found["first"], found["second"]) and found["metric"] == primary
    )
    return arm, contrasts if arm else (), tuple(results.get("limits", [])) if arm else ()


def _optional(path: Path) -> Any:
    return read_json(path) if path.is_file() else None
