"""The study of all trials: each arm with each point of the grid, as an arm of its own."""

from collections.abc import Mapping
from typing import Any

from posattn.comparison.budgets.adjusted import with_values
from posattn.comparison.budgets.config import STEPS
from posattn.comparison.budgets.match import check_warmup
from posattn.comparison.evaluations import EvaluationConfig
from posattn.comparison.evaluations.validation import ValidationConfig
from posattn.comparison.factorial.depth_control import DEPTH_CONTROL
from posattn.comparison.study import Study
from posattn.comparison.tuning.config import SPLIT, TuningConfig, Values
from posattn.errors import RecipeError
from posattn.recipe.schema import Recipe


def trial_name(arm: str, number: int) -> str:
    """Return what an arm is called with the point of this number, counted from 1."""
    return f"{arm}.trial-{number}"


def trial_study(study: Study, tuning: TuningConfig, recipes: Mapping[str, Recipe]) -> Study:
    """Return the study whose arms are all trials, with the tuning seeds and the validation score.

    `recipes` are those of the arms, budgets matched.
    """
    points = tuning.points()
    steps = _steps(study, tuning, recipes)
    arms = {
        trial_name(arm, number): _overrides(
            study.arms[arm], number, {**point, **steps.get(arm, {})}
        )
        for arm in study.arms
        for number, point in enumerate(points, start=1)
    }
    reasons = dict.fromkeys(tuning.grid, "tried in every arm with the same values")
    return Study(
        name=f"{study.name}-tuning",
        title=f"Tuning of {study.title or study.name}",
        description="The trials that chose the values of a study's arms, on seeds of their own.",
        base=study.base,
        shared=dict(study.overrides("shared").data),
        arms=arms,
        varies=study.varies,
        declared=study.declared,
        confounded=study.confounded,
        compensations={**study.compensations, **reasons},
        baseline=trial_name(study.baseline, 1),
        seeds=tuning.seeds,
        primary=tuning.select_by,
        evaluations=(_validation(study),),
    )


def _overrides(own: Mapping[str, Any], number: int, values: Values) -> dict[str, Any]:
    found = with_values(own, values)
    if DEPTH_CONTROL in found:
        found[DEPTH_CONTROL] = trial_name(str(found[DEPTH_CONTROL]), number)
    return found


def _validation(study: Study) -> EvaluationConfig:
    """Return how the study itself evaluates the validation split."""
    own = [config for config in study.evaluations if config.name == SPLIT]
    return own[0] if own else ValidationConfig()


def _steps(
    study: Study, tuning: TuningConfig, recipes: Mapping[str, Recipe]
) -> dict[str, dict[str, int]]:
    """Return the steps of each arm's trials where they are not those of the arm."""
    if tuning.steps is None:
        return {}
    base = recipes[study.baseline].train.steps
    found = {}
    for arm, recipe in recipes.items():
        if base is None or recipe.train.steps is None:
            raise RecipeError(
                f"tuning.steps needs {STEPS} in every arm, and '{arm}' trains by epochs; leave "
                "tuning.steps out"
            )
        steps = max(1, round(recipe.train.steps * tuning.steps / base))
        check_warmup(arm, recipe, steps, "tuning.steps")
        found[arm] = {STEPS: steps}
    return found
