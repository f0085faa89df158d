"""Where two recipes differ, by dotted path."""

from typing import Any, Final

from posattn.recipe.schema import Recipe, recipe_data

ABSENT: Final = object()
"""Stands for a value that one of the two does not have."""


def differences(first: Recipe, second: Recipe) -> dict[str, tuple[Any, Any]]:
    """Return the two values for each dotted path where they differ, name and description left out."""
    left, right = (flatten(recipe_data(recipe)) for recipe in (first, second))
    found = {}
    for path in {**left, **right}:
        pair = (left.get(path, ABSENT), right.get(path, ABSENT))
        if path not in ("name", "description") and not _same(*pair):
            found[path] = pair
    return found


def flatten(data: Any, path: str = "") -> dict[str, Any]:
    """Return the leaves of mappings and lists by dotted path; an empty one is a leaf itself."""
    if isinstance(data, dict) and data:
        items = list(data.items())
    elif isinstance(data, (list, tuple)) and data:
        items = list(enumerate(data))
    else:
        return {path: data}
    leaves: dict[str, Any] = {}
    for key, value in items:
        leaves.update(flatten(value, f"{path}.{key}" if path else str(key)))
    return leaves


def _same(left: Any, right: Any) -> bool:
    return type(left) is type(right) and bool(left == right)
