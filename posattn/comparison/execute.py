"""One run of a study, inside a worker process: train or resume, then evaluate."""

import os
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from posattn.comparison.evaluations import EvaluationConfig, RunEvaluation, evaluations
from posattn.comparison.evaluations.subject import Subject
from posattn.comparison.locks import locked
from posattn.comparison.progress import Throttle
from posattn.comparison.run_evidence import EVALUATIONS
from posattn.comparison.worker import Report
from posattn.errors import PosattnError, RunFailed
from posattn.recipe.run import train_recipe
from posattn.recipe.schema import Recipe
from posattn.training.determinism import reproducible
from posattn.training.durable import write_json
from posattn.training.run_folder import RunFolder, State, Status
from posattn.training.run_inputs import Progress

LOCK_SECONDS = 60.0
"""How long a run waits for a worker of an earlier, killed study to save the same run and go."""


@dataclass(frozen=True)
class RunTask:
    """A run of a study: what to train, where, and what to evaluate."""

    key: str
    folder: Path
    recipe: Recipe
    evaluations: tuple[EvaluationConfig, ...]


def execute_run(task: RunTask, report: Report) -> str:
    """Train the run to its end, from where it stopped, evaluate it, and return its state."""
    with locked(task.folder, f"the run {task.key}", wait=LOCK_SECONDS):
        resume = RunFolder(task.folder).holds_run()
        throttle = Throttle()

        def forward(progress: Progress) -> None:
            if throttle.due() or progress.step == progress.steps:
                report(_describe(progress))

        result = train_recipe(task.recipe, task.folder, resume=resume, progress=forward)
        if result.state == "finished":
            report({"state": "evaluating", "process": os.getpid()})
            _evaluate(task)
    return result.state


def is_done(folder: Path) -> bool:
    """Return whether a run needs nothing more: it is evaluated, or has diverged."""
    status = RunFolder(folder).read_status()
    if status is None:
        return False
    evaluated = (folder / EVALUATIONS).is_file()
    return status.state == "diverged" or (status.state == "finished" and evaluated)


def mark_ended(folder: Path, state: State, reason: str) -> None:
    """Say in status.json how a run ended that could not say so itself."""
    files = RunFolder(folder)
    status = files.read_status() or Status("running")
    folder.mkdir(parents=True, exist_ok=True)
    files.write_status(replace(status, state=state, reason=reason))


def _evaluate(task: RunTask) -> None:
    if (task.folder / EVALUATIONS).is_file():
        return
    found: dict[str, Any] = {}
    with reproducible(task.recipe.train.threads):
        subject = Subject.load(task.folder, task.recipe)
        for config in task.evaluations:
            kind = evaluations.get(config.name)
            if issubclass(kind, RunEvaluation):
                found[config.name] = _one(kind(config), config.name, subject)
    found["conditions"] = {"backend": subject.backend()}
    write_json(task.folder / EVALUATIONS, found)


def _one(evaluation: RunEvaluation, name: str, subject: Subject) -> dict[str, Any]:
    try:
        return evaluation.evaluate(subject)
    except PosattnError as error:
        raise RunFailed(f"trained, but the evaluation '{name}' failed: {error}") from error
    except Exception as error:
        kind = type(error).__name__
        raise RunFailed(f"trained, but the evaluation '{name}' failed: {kind}: {error}") from error


def _describe(progress: Progress) -> dict[str, Any]:
    return {
        "state": "training",
        "step": progress.step,
        "steps": progress.steps,
        "loss": progress.loss,
        "tokens_per_second": progress.tokens_per_second,
        "process": os.getpid(),
    }
