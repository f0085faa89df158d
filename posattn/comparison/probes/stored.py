"""A probe and its predictions as plan.json holds them, written before the first step."""

from dataclasses import asdict
from typing import Any

from posattn.comparison.probes.base import Probe
from posattn.recipe.schema import Recipe


def probe_to_json(probe: Probe) -> dict[str, Any]:
    """Return what the probe asks, and its marks: accuracy of guessing, and of a solved run."""
    return {
        "name": probe.config.name,
        "question": probe.question,
        "chance": probe.chance(),
        "solved": probe.solved(),
        "score": probe.primary(),
        "options": probe.config.model_dump(mode="json", exclude={"name"}),
    }


def predictions_to_json(probe: Probe, recipe: Recipe) -> list[dict[str, Any]]:
    """Return what the maths says of a recipe."""
    return [asdict(prediction) for prediction in probe.predict(recipe)]
