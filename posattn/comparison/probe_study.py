"""One recipe on one probe, or on its own text, as an ordinary study with one arm: `posattn probe`."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from posattn.comparison.results_schema import Results
from posattn.comparison.study import RECIPE_SECTIONS, Study
from posattn.errors import RecipeError
from posattn.recipe.explain import validate_document
from posattn.recipe.merge import merge, read_overrides
from posattn.recipe.reader import Document, Origin
from posattn.recipe.resolve import Overrides
from posattn.recipe.schema import load_recipe
from posattn.recipe.shipped import find_recipe

TEXT = {"length": "length", "evidence_distance": "inside"}
"""Evaluations of a model that was trained on its recipe's own text, and the report's section on each."""


def probe_study(
    probe: str, recipe: str | Path, seeds: Sequence[int] = (0,), overrides: Overrides = ()
) -> Study:
    """Return the study that trains the encoder and decoder of `recipe` on a probe.

    For the evaluations in `TEXT` the recipe is trained on its own text and evaluated so. Overrides go
    into the recipe (`encoder.num_layers=1`) or into the options of the probe (`probe.steps=100`).
    Raises `RecipeError` for what does not exist or does not fit.
    """
    path = find_recipe(recipe)
    arm = load_recipe(path).name
    parts = Document({"shared": {}, "probe": {"name": probe}}, {(): Origin("posattn probe")})
    for item in read_overrides(overrides):
        if item.path[0] not in (*RECIPE_SECTIONS, "probe"):
            raise RecipeError(
                f"{item.origin}: '{item.path[0]}' is no section of a recipe; give a path into one "
                f"({', '.join(RECIPE_SECTIONS)}) or an option of the probe, such as probe.steps=100"
            )
        part = item.document()
        if item.path[0] != "probe":
            below = {("shared", *key): place for key, place in part.origins.items()}
            part = Document({"shared": part.data}, below)
        parts = merge(parts, part)
    data: dict[str, Any] = {
        "name": f"{probe}-{arm}",
        "base": str(path),
        "arms": {arm: {}},
        "varies": [],
        "baseline": arm,
        "seeds": list(seeds),
        **parts.data,
    }
    if probe in TEXT:
        data["evaluations"] = [{"name": "validation"}, data.pop("probe")]
    study = validate_document(Study, Document(data, parts.origins), what="probe")
    study._origins.update(parts.origins)
    return study


def probe_summary(results: Results) -> dict[str, Any]:
    """Return what a probe found as plain data: accuracy by length, predictions and their outcome."""
    if results.probe is None:
        return _text_summary(results)
    scores = results.arms[0].scores[results.probe.score].values
    return {
        "probe": results.probe.model_dump(mode="json", exclude={"arms", "lengths"}),
        "arm": results.arms[0].name,
        "accuracy": {str(seed): value for seed, value in scores.items()},
        "solved": results.probe.arms[0].model_dump(mode="json", exclude={"arm"}),
        "lengths": [
            item.model_dump(mode="json", exclude={"arm"}) for item in results.probe.lengths
        ],
        "predictions": [
            outcome.model_dump(mode="json", exclude={"arm"}) for outcome in results.predictions
        ],
    }


def _text_summary(results: Results) -> dict[str, Any]:
    arm = results.arms[0].model_dump(mode="json")
    return {
        "arm": arm["name"],
        "loss": arm["scores"]["validation_loss"]["values"],
        "lengths": arm["length"],
        "evidence": (arm["inside"] or {}).get("evidence", []),
    }
