"""What differs between studies besides their arms, and which arms are the same."""

from collections.abc import Mapping, Sequence
from typing import Any, Literal

from posattn.comparison.several.schema import ArmMatch, Condition, Sameness
from posattn.comparison.several.sources import Source
from posattn.recipe.difference import flatten

PER_SEED = ("train.seed", "train.data_seed")
ABSENT = "(nothing)"

Kind = Literal["recipe", "evaluation", "data", "environment", "seeds", "score"]


def differing_conditions(sources: Sequence[Source]) -> list[Condition]:
    """Return every value that the arms of each study share and that is not equal in all studies."""
    found = _differing("recipe", {source.label: _shared_recipe(source) for source in sources})
    parts: list[tuple[Kind, dict[str, Mapping[str, Any]]]] = [
        ("evaluation", {s.label: {"evaluations": s.plan.get("evaluations")} for s in sources}),
        ("score", {s.label: {"primary score": s.results.study.primary} for s in sources}),
        ("seeds", {s.label: {"seeds": s.results.study.seeds} for s in sources}),
        ("data", {s.label: s.results.data.get("common") or {} for s in sources}),
        ("environment", {s.label: s.results.environment.get("common") or {} for s in sources}),
    ]
    for kind, values in parts:
        found += _differing(kind, values)
    return found


def _shared_recipe(source: Source) -> dict[str, Any]:
    """Return the values that all arms of a study have, from its stored recipes."""
    recipes = [r for arm in source.results.arms if (r := source.recipe(arm.name)) is not None]
    if not recipes:
        return {k: v for k, v in flatten(source.results.recipe).items() if _is_condition(k)}
    first, *others = recipes
    return {
        path: value
        for path, value in first.items()
        if _is_condition(path) and all(path in r and r[path] == value for r in others)
    }


def _is_condition(path: str) -> bool:
    return path not in (*PER_SEED, "name", "description")


def _differing(kind: Kind, values: Mapping[str, Mapping[str, Any]]) -> list[Condition]:
    paths = dict.fromkeys(path for found in values.values() for path in found)
    conditions = []
    for path in paths:
        shown = {label: found.get(path, ABSENT) for label, found in values.items()}
        first = next(iter(shown.values()))
        if any(type(value) is not type(first) or value != first for value in shown.values()):
            conditions.append(Condition(kind=kind, path=path, values=shown))
    return conditions


def match_arms(sources: Sequence[Source]) -> list[ArmMatch]:
    """Return, by name, in which studies an arm is and whether it is one recipe in all of them."""
    names = dict.fromkeys(arm.name for source in sources for arm in source.results.arms)
    return [_match(name, sources) for name in names]


def _match(name: str, sources: Sequence[Source]) -> ArmMatch:
    having = [s for s in sources if any(arm.name == name for arm in s.results.arms)]
    recipes = [source.recipe(name) for source in having]
    differs: list[str] = []
    sameness: Sameness = "only here"
    if len(having) > 1:
        digests = {source.results.arm(name).recipe_digest for source in having}
        known = [recipe for recipe in recipes if recipe is not None]
        differs = _paths_apart(known)
        if len(known) < len(having):
            sameness = "same recipe" if len(digests) == 1 and None not in digests else "unknown"
        else:
            sameness = "other recipe" if differs else "same recipe"
    return ArmMatch(
        name=name,
        studies=[source.label for source in having],
        sameness=sameness,
        differs=differs,
        also=_same_under_other_names(name, having[0], sources),
    )


def _paths_apart(recipes: Sequence[Mapping[str, Any]]) -> list[str]:
    paths = dict.fromkeys(path for recipe in recipes for path in recipe)
    return [
        path
        for path in paths
        if path not in PER_SEED
        and any(recipe.get(path, ABSENT) != recipes[0].get(path, ABSENT) for recipe in recipes)
    ]


def _same_under_other_names(name: str, source: Source, sources: Sequence[Source]) -> list[str]:
    mine = source.recipe(name)
    if mine is None:
        return []
    return [
        f"{other.label}: {arm.name}"
        for other in sources
        for arm in other.results.arms
        if arm.name != name and other.label != source.label and other.recipe(arm.name) == mine
    ]
