"""`posattn validate`: whether a recipe or a study can run, without running it."""

import sys
from pathlib import Path
from typing import Any

from posattn.cli.app import JsonOption, RecipeArgument, SetOption, app, print_json
from posattn.errors import PosattnError


@app.command(
    epilog="Examples: posattn validate rope | posattn validate my/recipe.yaml --set train.steps=10 | "
    "posattn validate quick (a study)"
)
def validate(recipe: RecipeArgument, overrides: SetOption, as_json: JsonOption = False) -> None:
    """Check a recipe, or a study with all its arms: exit 0, or 2 with every fault found.

    The model is built without memory or weights, and the chosen backend is asked for refusals.
    """
    try:
        facts = _validate(recipe, overrides)
    except PosattnError as error:
        if as_json:
            print_json({"valid": False, "error": str(error)})
        raise
    if as_json:
        print_json({"valid": True, **facts})
    else:
        sys.stdout.write(f"{facts['name']}: valid {facts['kind']} ({facts['about']})\n")


def _validate(reference: str, overrides: list[str]) -> dict[str, str]:
    from posattn.recipe.reader import read_file
    from posattn.recipe.shipped import find_recipe, is_study

    path = find_recipe(reference, kind=None)
    if is_study(read_file(path).data):
        return _validate_study(path, overrides)
    from posattn.recipe.check import check_recipe
    from posattn.recipe.schema import load_recipe

    loaded = load_recipe(path, overrides)
    checked = check_recipe(loaded)
    return {
        "kind": "recipe",
        "name": loaded.name,
        "about": f"{checked.parameters:,} parameters, backend {checked.backend}",
    }


def _validate_study(path: Path, overrides: list[str]) -> dict[str, str]:
    from posattn.comparison.plan import make_plan
    from posattn.comparison.study import load_study
    from posattn.recipe.check import check_recipe

    study = load_study(path, overrides)
    if study.tasks:
        return _validate_tasks(path, study)
    plan = make_plan(study)
    for arm in plan.arms:
        try:
            check_recipe(arm.recipe)
        except PosattnError as error:
            raise type(error)(f"{path}: arm '{arm.name}': {error}") from error
    return {
        "kind": "study",
        "name": plan.study.name,
        "about": f"{len(plan.arms)} arms x {len(plan.study.seeds)} seeds",
    }


def _validate_tasks(path: Path, study: Any) -> dict[str, str]:
    from posattn.comparison.suite.plan import make_suite_plan

    try:
        plan = make_suite_plan(study)
    except PosattnError as error:
        raise type(error)(f"{path}: {error}") from error
    runs = sum(len(part.runs) for part in plan.plans.values())
    return {
        "kind": "study",
        "name": study.name,
        "about": f"{len(plan.plans)} tasks, {runs} runs in all",
    }
