"""`tuned`: run the trials, choose, write tuning.json, and give each arm what was chosen for it."""

import contextlib
import hashlib
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from pydantic import ValidationError

from posattn.comparison.budgets.adjusted import adjusted
from posattn.comparison.metrics import metrics
from posattn.comparison.plan import StudyPlan, make_plan
from posattn.comparison.progress import ENDED, ShowProgress, StudyProgress
from posattn.comparison.results import collect
from posattn.comparison.study import Study
from posattn.comparison.tuning.choice import choose
from posattn.comparison.tuning.schema import TuningInfo
from posattn.comparison.tuning.trials import trial_study
from posattn.errors import RecipeError, StudyIncomplete
from posattn.recipe.schema import recipe_digest
from posattn.training.durable import read_json, write_json

FILE, FOLDER = "tuning.json", "tuning"

RunStudy = Callable[[Study, Path, ShowProgress | None], object]
"""Runs a study into a folder, going on where it was stopped, and shows its progress."""


def tuned(plan: StudyPlan, out: Path, show: ShowProgress | None, run: RunStudy) -> Study:
    """Return the planned study with the chosen values in its arms, as compensations.

    What is stored in `out` is read and no trial is run again: the runs rest on it. Raises
    `StudyIncomplete` if all trials of an arm failed.
    """
    tuning = plan.study.tuning
    assert tuning is not None
    trials = trial_study(plan.study, tuning, {arm.name: arm.recipe for arm in plan.arms})
    digest = _digest(make_plan(trials))
    path = out / FILE
    info = read_tuning(path, digest) if path.is_file() else None
    if info is None:
        # a trial that failed is never chosen, and stays in tuning.json with its reason
        with contextlib.suppress(StudyIncomplete):
            run(trials, out / FOLDER, _as_stage(plan.study.name, show))
        metric = metrics.get(tuning.select_by)
        info = choose(list(plan.study.arms), tuning, metric, collect(out / FOLDER), digest)
        write_json(path, info.model_dump(mode="json"))
    reasons = dict.fromkeys(tuning.grid, _reason(info))
    return adjusted(plan.study, {arm.arm: arm.values for arm in info.arms}, reasons)


def read_tuning(path: Path, digest: str | None = None) -> TuningInfo:
    """Return tuning.json; raise `RecipeError` if it is damaged, or of other trials than `digest`."""
    try:
        info = TuningInfo.model_validate(read_json(path))
    except (ValueError, ValidationError) as error:
        raise RecipeError(
            f"{path} is damaged ({error}); delete it to have the values chosen again from the trials "
            f"in {path.parent / FOLDER}"
        ) from error
    if digest is not None and info.plan != digest:
        raise RecipeError(
            f"{path} was chosen from other trials than the study has now: its arms, grid or tuning "
            "seeds have changed. Choose another folder with --out, or take the change back to "
            "continue it"
        )
    return info


def _reason(info: TuningInfo) -> str:
    seeds = ", ".join(map(str, info.seeds))
    return (
        f"chosen by tuning from the same {info.trials_per_arm} trials for every arm, by the mean "
        f"{info.select_by} over the seeds {seeds}"
    )


def _digest(plan: StudyPlan) -> str:
    """Return the SHA-256 of all that decides the trials."""
    recipes = {arm.name: recipe_digest(arm.recipe) for arm in plan.arms}
    evaluated = [config.model_dump(mode="json") for config in plan.study.evaluations]
    content = [recipes, list(plan.study.seeds), plan.study.primary, evaluated]
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


def _as_stage(study: str, show: ShowProgress | None) -> ShowProgress | None:
    """Return a function that shows the study of trials as the stage of tuning."""
    if show is None:
        return None

    def shown(progress: StudyProgress) -> None:
        arms = dict.fromkeys(run.arm for run in progress.runs)
        open_arms = {run.arm for run in progress.runs if run.state not in ENDED}
        number = min(len(arms) - len(open_arms) + 1, len(arms))
        message = progress.message or f"tuning trial {number} of {len(arms)}"
        show(replace(progress, study=f"{study}, tuning", stage="tuning", message=message))

    return shown
