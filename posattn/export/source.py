"""The model that is exported: a run's trained one, or a recipe's with its first weights."""

from pathlib import Path

from posattn.encoder.model import MaskedLanguageModel
from posattn.errors import CheckpointError, IncompatibleParts
from posattn.recipe.build import build
from posattn.recipe.schema import Recipe, load_recipe
from posattn.training.run_folder import RunFolder
from posattn.training.weights import load_weights, read_tensors

TOKENS = "encoder.tokens.weight"


def load_model(reference: str) -> MaskedLanguageModel:
    """Return the model of a run folder, of its `final` folder, or of a recipe, in evaluation mode.

    Its backend is `eager`, whose operations every runtime has. Raises `IncompatibleParts` where a
    mechanism cannot be exported.
    """
    path = Path(reference)
    if not path.is_dir():
        return _prepared(load_recipe(reference), None)
    folder = path if (path / "model.safetensors").exists() else RunFolder(path).final
    weights = folder / "model.safetensors"
    if not weights.exists():
        raise CheckpointError(
            f"{path} holds no trained model ({weights} is not there); name a finished run or a recipe"
        )
    return _prepared(load_recipe(folder / "recipe.yaml"), weights)


def _prepared(recipe: Recipe, weights: Path | None) -> MaskedLanguageModel:
    _check(recipe)
    encoder = recipe.encoder.model_copy(update={"backend": "eager", "unpad": False})
    recipe = recipe.model_copy(update={"encoder": encoder})
    if weights is None:
        return build(recipe).eval()
    model = build(recipe, len(read_tensors(weights)[TOKENS]))
    load_weights(model, weights)
    return model.eval()


def _check(recipe: Recipe) -> None:
    if recipe.encoder.memory_length():
        names = ", ".join(part.name for part in recipe.encoder.mechanism if part.memory())
        raise IncompatibleParts(
            f"'{names}' remembers {recipe.encoder.memory_length()} states of the segment before, and an "
            "exported graph remembers nothing; set memory_length to 0"
        )
