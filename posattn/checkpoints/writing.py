"""The folder that an import writes: as `final` of a run, with the import's report."""

import shutil
from pathlib import Path
from typing import Any

from posattn.checkpoints.pretrained import Pretrained
from posattn.errors import RecipeError
from posattn.recipe.schema import recipe_data
from posattn.recipe.writer import write_yaml
from posattn.training.durable import TEMPORARY, replace_folder, write_and_sync, write_json, writing
from posattn.training.run_folder import check_out
from posattn.training.weights import pack_tensors

RECIPE, WEIGHTS, TOKENIZER, REPORT = (
    "recipe.yaml",
    "model.safetensors",
    "tokenizer.json",
    "import.json",
)


def check_target(out: Path) -> None:
    """Raise RecipeError, before any work, if nothing can be written to `out` or something is there."""
    check_out(out)
    if out.is_dir() and any(out.iterdir()):
        raise RecipeError(f"{out} is not empty; choose another --out folder, or delete this one")


def write_folder(made: Pretrained, out: Path) -> None:
    """Write the folder, whole or not at all."""
    out = out.absolute()
    temporary = out.with_name(f"{TEMPORARY}{out.name}")
    with writing(out):
        shutil.rmtree(temporary, ignore_errors=True)
        temporary.mkdir(parents=True)
        write_and_sync(temporary / WEIGHTS, pack_tensors(made.tensors()))
        write_and_sync(temporary / RECIPE, write_yaml(_recipe(made)).encode())
        if made.tokenizer is not None:
            text = made.tokenizer.to_str(pretty=True)
            write_and_sync(temporary / TOKENIZER, text.encode())
        write_json(temporary / REPORT, made.report.record())
        replace_folder(temporary, out)


def _recipe(made: Pretrained) -> dict[str, Any]:
    """Return the recipe with paths that stay right when the folder moves, and with where it starts."""
    data = recipe_data(made.recipe)
    if made.tokenizer is not None:
        data["data"]["tokenizer"] = {"name": "file", "path": TOKENIZER}
    data["train"]["start"] = {
        "path": ".",
        "accept_new": [] if made.masked_lm is not None else ["decoder.*", "head.*"],
        "accept_unused": ["tasks.*"] if list(made.tasks.tasks.parameters()) else [],
    }
    return data
