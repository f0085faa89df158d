"""From a study as written to the study that is run: budgets matched, values tuned."""

import json
from dataclasses import dataclass
from pathlib import Path

from posattn.comparison.budgets.config import StepsMatch, TimeMatch
from posattn.comparison.budgets.match import Recipes, matched
from posattn.comparison.budgets.text import count_text
from posattn.comparison.budgets.timing import step_times
from posattn.comparison.differences import describe, differences
from posattn.comparison.plan import StudyPlan, choices, make_plan
from posattn.comparison.progress import ProgressBoard, ShowProgress
from posattn.comparison.study import Study
from posattn.comparison.tuning.tune import RunStudy, tuned
from posattn.errors import RecipeError
from posattn.training.durable import read_json, strict_json
from posattn.training.text.prepare import prepare


@dataclass(frozen=True)
class Workshop:
    """Where a study is settled, and who is told."""

    out: Path
    show: ShowProgress | None


def is_settled(study: Study) -> bool:
    """Return whether the study is run as it is written."""
    return isinstance(study.match, StepsMatch) and study.tuning is None


def settled(plan: StudyPlan, shop: Workshop, run: RunStudy) -> StudyPlan:
    """Return the plan with budgets matched and then values tuned, or the same plan without either.

    `run` runs the study of the trials. Raises `RecipeError` where that cannot be done, or the
    folder was begun with other choices.
    """
    study = plan.study
    if is_settled(study):
        return plan
    check_same_choices(study, shop.out)
    if not isinstance(study.match, StepsMatch):
        board = ProgressBoard(study.name, plan.runs, shop.show)
        plan = make_plan(_matched(plan, shop, board), study)
    if study.tuning is not None:
        plan = make_plan(tuned(plan, shop.out, shop.show, run), study)
    return plan


def check_same_choices(study: Study, out: Path) -> None:
    """Raise `RecipeError`, before anything is measured, if runs were begun with other choices."""
    path = out / "plan.json"
    if not path.is_file() or not any((out / "runs").glob("*/*")):
        return
    try:
        stored = read_json(path)
    except ValueError:
        return  # the check of the whole plan says so
    there = {key: value for key, value in stored.items() if key in ("match", "tuning")}
    found = differences(there, json.loads(strict_json(choices(study))))
    if found:
        raise RecipeError(
            f"{out} holds runs of a study with other budgets:\n"
            f"{describe(found, 'the folder', 'the study')}\n"
            "Choose another folder with --out, or take the change back to continue it"
        )


def _matched(plan: StudyPlan, shop: Workshop, board: ProgressBoard) -> Study:
    study = plan.study
    recipes: Recipes = {arm.name: arm.recipe for arm in plan.arms}
    board.enter("data", "preparing the text")
    for recipe in recipes.values():
        prepare(recipe.data, progress=board.say)
    board.enter("matching", f"matching arms by {study.match.name}")

    def times(found: Recipes) -> dict[str, float]:
        assert isinstance(study.match, TimeMatch)
        return dict(step_times(found, study.baseline, study.match, shop.out, board))

    return matched(study, recipes, count_text, times)
