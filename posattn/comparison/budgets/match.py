"""`matched`: a study whose arms have been given the baseline's budget."""

from collections.abc import Callable, Mapping
from typing import Any

from posattn.comparison.budgets.adjusted import adjusted
from posattn.comparison.budgets.config import HELD, SETS, STEPS, WIDTH, ParametersMatch
from posattn.comparison.budgets.text import CountText
from posattn.comparison.budgets.width import count_parameters, matched_width
from posattn.comparison.study import Study
from posattn.errors import RecipeError
from posattn.recipe.flops import count_flops
from posattn.recipe.schema import Recipe

Recipes = Mapping[str, Recipe]
Times = Callable[[Recipes], Mapping[str, float]]
"""Returns by arm the time of a training step over the baseline's."""


def matched(study: Study, recipes: Recipes, count_text: CountText, times: Times) -> Study:
    """Return the study with every arm but the baseline changed as `match` asks.

    `recipes` are those of the arms as the study writes them. What is changed is declared with the
    reason. Raises `RecipeError` where an arm cannot be matched.
    """
    path = SETS.get(study.match.name)
    if path is None:
        return study
    wanted = (
        _widths(study, recipes, count_text)
        if path == WIDTH
        else _steps(study, recipes, _costs(study, recipes, count_text, times))
    )
    changes = {
        arm: {path: value} for arm, value in wanted.items() if value != _present(recipes[arm], path)
    }
    reason = (
        f"set by match: {study.match.name}, so that every arm has the {HELD[study.match.name]} of "
        f"{study.baseline}"
    )
    return adjusted(study, changes, {path: reason} if changes else {})


def _present(recipe: Recipe, path: str) -> int | None:
    return recipe.encoder.inner_size() if path == WIDTH else recipe.train.steps


def _widths(study: Study, recipes: Recipes, count_text: CountText) -> dict[str, int]:
    """Return the feed-forward width of every arm."""
    assert isinstance(study.match, ParametersMatch)
    base = recipes[study.baseline]
    target = count_parameters(base, count_text(base).vocab_size)
    return {
        arm: matched_width(recipe, target, count_text(recipe).vocab_size, study.match.multiple)
        for arm, recipe in recipes.items()
        if arm != study.baseline
    }


def _costs(
    study: Study, recipes: Recipes, count_text: CountText, times: Times
) -> Mapping[str, float]:
    """Return what one step of each arm costs, in the unit of the budget."""
    if study.match.name == "time":
        return times(recipes)
    costs = {}
    for arm, recipe in recipes.items():
        text = count_text(recipe)
        costs[arm] = text.tokens_per_step(recipe)
        if study.match.name == "flops":
            costs[arm] *= count_flops(recipe, vocab_size=text.vocab_size).total
    return costs


def _steps(study: Study, recipes: Recipes, costs: Mapping[str, float]) -> dict[str, int]:
    """Return the steps of every arm at which its cost comes nearest to the baseline's."""
    by_epochs = [arm for arm, recipe in recipes.items() if recipe.train.steps is None]
    if by_epochs:
        raise RecipeError(
            f"match: {study.match.name} sets {STEPS}, but {', '.join(by_epochs)} has train.epochs; "
            "give train.steps instead, for instance under 'shared'"
        )
    base = recipes[study.baseline].train.steps or 0
    wanted = {
        arm: max(1, round(base * costs[study.baseline] / costs[arm]))
        for arm in recipes
        if arm != study.baseline
    }
    for arm, steps in wanted.items():
        check_warmup(arm, recipes[arm], steps, f"match: {study.match.name}")
    return wanted


def check_warmup(arm: str, recipe: Recipe, steps: int, who: str) -> None:
    """Raise `RecipeError` if the fixed warm-up of an arm is longer than its new steps."""
    warmup: Any = recipe.train.warmup_steps
    if warmup is not None and warmup > steps:
        raise RecipeError(
            f"{who} gives the arm '{arm}' {steps} steps, fewer than its train.warmup_steps "
            f"({warmup}); give train.warmup_fraction, which scales with the steps"
        )
