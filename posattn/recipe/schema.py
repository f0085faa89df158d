"""`Recipe`: the sections that lie beside the parts of posattn, composed; and its way in and out of YAML."""

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from pydantic import Field, ValidationError, model_validator
from pydantic_core import InitErrorDetails, PydanticCustomError

from posattn.config import FrozenConfig, Text, open_field
from posattn.encoder.config import EncoderConfig
from posattn.encoder.decoders import AnyDecoderConfig, PlainDecoderConfig
from posattn.encoder.heads import HeadConfig
from posattn.recipe.agreement import disagreements
from posattn.recipe.explain import validate_document
from posattn.recipe.reader import Document
from posattn.recipe.resolve import Overrides, resolve_recipe
from posattn.recipe.writer import write_yaml
from posattn.training.config import TrainConfig
from posattn.training.objectives import MlmConfig, ObjectiveConfig, objectives
from posattn.training.text.config import DataConfig

if TYPE_CHECKING:
    AnyObjectiveConfig: TypeAlias = ObjectiveConfig
else:
    AnyObjectiveConfig = open_field(objectives, ObjectiveConfig)


class Recipe(FrozenConfig):
    """Everything that decides a training run."""

    name: Text = Field(
        min_length=1, description="what the run is called; the file's stem if left out"
    )
    description: Text = Field("", description="one sentence for people")
    encoder: EncoderConfig
    decoder: AnyDecoderConfig = PlainDecoderConfig()
    head: HeadConfig = HeadConfig()
    objective: AnyObjectiveConfig = MlmConfig()
    data: DataConfig
    train: TrainConfig = TrainConfig()

    @model_validator(mode="after")
    def _sections_agree(self) -> "Recipe":
        faults = [
            InitErrorDetails(
                type=PydanticCustomError("disagreement", "{text}", {"text": text}),
                loc=path,
                input=None,
            )
            for path, text in disagreements(
                self.encoder, self.decoder, self.head, self.data, self.train
            )
        ]
        if faults:
            raise ValidationError.from_exception_data("Recipe", faults)
        return self


def load_recipe(
    reference: str | Path, overrides: Overrides = (), *, folder: Path | None = None
) -> Recipe:
    """Return the recipe in a file, or a shipped one by name, with `extends` and overrides resolved.

    `overrides` are texts such as `train.steps=10`, or a mapping of dotted paths to values. A relative
    `reference` is looked up from `folder`, by default the current one. Raises `RecipeError` with every
    fault, each with file, line and dotted path.
    """
    return recipe_from_document(resolve_recipe(reference, overrides, folder=folder))


def recipe_from_document(document: Document) -> Recipe:
    """Return a merged document as a recipe."""
    return validate_document(Recipe, document)


def recipe_data(recipe: Recipe) -> dict[str, Any]:
    """Return the whole recipe as plain data, options of plug-ins and defaults included."""
    return recipe.model_dump(mode="json")


def dump_recipe(recipe: Recipe) -> str:
    """Return the recipe as YAML; loading it gives an equal recipe."""
    return write_yaml(recipe_data(recipe))


def recipe_digest(recipe: Recipe) -> str:
    """Return the SHA-256 of all that decides a run: everything but the name and the description."""
    return data_digest(recipe_data(recipe))


def data_digest(recipe: Mapping[str, Any]) -> str:
    """Return `recipe_digest` of a recipe that is given as plain data."""
    data = {key: value for key, value in recipe.items() if key not in ("name", "description")}
    text = json.dumps(data, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()


def json_schema() -> dict[str, Any]:
    """Return the JSON Schema of a recipe file, each open field a choice of its registered entries.

    Nothing is required but the `name` in an open field: `extends` may bring the rest.
    """
    schema = Recipe.model_json_schema()
    extends = {"type": "string", "description": "another recipe: a path from this file, or a name"}
    for part in (schema, *schema.get("$defs", {}).values()):
        part.pop("required", None)
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        **schema,
        "title": "posattn recipe",
        "properties": {"extends": extends, **schema["properties"]},
    }
