"""What the recipes of a design's combinations must be: possible, and different from each other."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from posattn.comparison.arm_recipe import arm_recipe
from posattn.comparison.factorial.design import Design, Levels
from posattn.errors import RecipeError
from posattn.recipe.merge import merge
from posattn.recipe.reader import Document

if TYPE_CHECKING:
    from posattn.comparison.study import Study

NAMES = ("name", "description")


def combination(document: Document, levels: Levels) -> Document:
    """Return what the levels of one combination override, in the order of the study's factors."""
    nested = Document({}, {(): document.origin(("factors",))})
    for factor, level in levels.items():
        nested = merge(nested, document.part(("factors", factor, level)))
    return nested


def explain_refusal(error: RecipeError, name: str, levels: Levels) -> RecipeError:
    """Return the error of a combination that refuses itself, with its name and the way out."""
    when = ", ".join(f"{factor}: {level}" for factor, level in levels.items())
    return type(error)(
        f"the combination {name} refuses itself: {error}\nIf it cannot be, leave it out and say why: "
        f"impossible: [{{when: {{{when}}}, reason: ...}}]"
    )


def check_differ(design: Design, recipes: Mapping[str, Mapping[str, Any]]) -> None:
    """Raise `RecipeError` if two combinations are one recipe: a factor does nothing there."""
    seen: list[tuple[str, dict[str, Any]]] = []
    for name in design.cells:
        recipe = {key: value for key, value in recipes[name].items() if key not in NAMES}
        same = next((other for other, before in seen if before == recipe), None)
        if same is not None:
            one, two = design.cells[same], design.cells[name]
            differing = ", ".join(factor for factor in one if one[factor] != two[factor])
            raise RecipeError(
                f"the combinations {same} and {name} are the same recipe, so {differing} does nothing "
                "there. Levels are merged in the order of the factors, and a level that brings another "
                "name replaces what stood before: put that factor first, or leave the combination out "
                "with impossible"
            )
        seen.append((name, recipe))


def refusals(study: "Study", design: Design) -> dict[str, str | None]:
    """Return, for each combination left out, why its recipe refuses itself; null if it does not."""
    found: dict[str, str | None] = {}
    for name, item in design.left_out.items():
        try:
            changes = combination(Document({"factors": study.factors}), item.levels)
            arm_recipe(name, study.base, study.overrides("shared"), changes)
            found[name] = None
        except RecipeError as error:
            found[name] = str(error).partition(": ")[2] or str(error)
    return found
