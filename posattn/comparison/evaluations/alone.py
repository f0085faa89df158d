"""Evaluations outside of a study: of a recipe's untrained model, or of a run that has ended."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from posattn.comparison.evaluations.base import RunEvaluation, evaluations
from posattn.comparison.evaluations.subject import Subject, device_of
from posattn.errors import RecipeError
from posattn.recipe.build import build
from posattn.recipe.check import check_inputs
from posattn.recipe.schema import Recipe, load_recipe
from posattn.training.run_folder import RunFolder
from posattn.training.text.prepare import prepare


def alone_names() -> list[str]:
    """Return the names of the evaluations that say something outside of a study."""
    return [name for name in evaluations.names() if _is_alone(name)]


def measure_untrained(
    name: str, recipe: Recipe, options: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """Return what the evaluation `name` says of the recipe's model with its first weights.

    Raises `RecipeError` for an evaluation that needs a trained model and for options it does not take,
    `IncompatibleParts` for a model that text alone does not feed, and `DataError` without text.
    """
    evaluation = _evaluation(name, options or {})
    check_inputs(recipe)
    corpus = prepare(recipe.data)
    model = build(recipe, corpus.tokenizer.vocab_size).to(device_of(recipe))
    return evaluation.evaluate(Subject(model, recipe, corpus, Path()))


def measure_run(
    name: str, folder: Path, options: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """Return what the evaluation `name` says of the trained model in a run folder.

    Raises as `measure_untrained` does, and `RecipeError` for a folder without a finished run.
    """
    evaluation = _evaluation(name, options or {})
    files = RunFolder(folder)
    if not files.recipe.is_file() or not (files.final / "model.safetensors").is_file():
        raise RecipeError(
            f"{folder} holds no finished run (recipe.yaml and final/model.safetensors); name the "
            "--out folder of posattn train, or runs/ARM/seed-N of a study"
        )
    return evaluation.evaluate(Subject.load(folder, load_recipe(files.recipe)))


def _evaluation(name: str, options: Mapping[str, Any]) -> RunEvaluation:
    kind = evaluations.get(name)
    if not (issubclass(kind, RunEvaluation) and _is_alone(name)):
        known = ", ".join(alone_names())
        raise RecipeError(
            f"the evaluation '{name}' belongs to a study; outside of one there are {known}"
        )
    try:
        return kind(kind.Config.model_validate({"name": name, **options}))
    except ValidationError as error:
        fault = error.errors(include_url=False)[0]
        where = ".".join(str(part) for part in fault["loc"]) or "options"
        raise RecipeError(f"evaluation '{name}', {where}: {fault['msg']}") from error


def _is_alone(name: str) -> bool:
    kind = evaluations.get(name)
    return issubclass(kind, RunEvaluation) and kind.alone
