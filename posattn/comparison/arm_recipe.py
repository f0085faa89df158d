"""The recipe of one arm: the base, over it what all arms share, over it what the arm changes."""

from pathlib import Path

from posattn.recipe.merge import merge
from posattn.recipe.reader import Document
from posattn.recipe.resolve import resolve_recipe
from posattn.recipe.schema import Recipe, recipe_from_document

THREADS = 1
"""Threads of a run whose recipe names none: runs are side by side, one on each core."""


def arm_recipe(name: str, base: str, shared: Document, changes: Document) -> Recipe:
    """Return the recipe of the arm `name`; raise `RecipeError` with every fault, by file and line."""
    document = resolve_recipe(Path(base))
    data = {key: value for key, value in document.data.items() if key != "description"}
    document = Document(data, document.origins)
    for part in (shared, changes):
        document = merge(document, part)
    given = document.data.get("train")
    if not isinstance(given, dict) or given.get("threads") is None:
        document = merge(document, Document({"train": {"threads": THREADS}}))
    return recipe_from_document(merge(document, Document({"name": name})))
