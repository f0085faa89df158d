"""The recipe of an imported checkpoint: the family's sections, and a start for data and training."""

from pathlib import Path
from typing import Any

from pydantic import TypeAdapter

from posattn.checkpoints.families.base import Plan
from posattn.checkpoints.report import TokenizerFacts
from posattn.checkpoints.sentence import SentencePart
from posattn.checkpoints.source import Source
from posattn.encoder.config import EncoderConfig
from posattn.encoder.tasks import AnyTaskConfig, TaskConfig
from posattn.recipe.merge import merge, read_overrides
from posattn.recipe.reader import Document, Origin
from posattn.recipe.resolve import Overrides, absolute_paths
from posattn.recipe.schema import Recipe, recipe_from_document

USUAL_LENGTH = 512
"""Tokens in a row of training text where neither model nor tokenizer names fewer."""


def imported_recipe(
    source: Source,
    plan: Plan,
    sentence: SentencePart,
    tokenizer: TokenizerFacts,
    overrides: Overrides,
) -> tuple[Recipe, dict[str, TaskConfig]]:
    """Return the recipe, overrides applied, and the options of the heads beside the masked-token one."""
    origin = Origin(f"{source.name}/config.json")
    data: dict[str, Any] = {
        "name": source.title,
        "description": f"Imported from {source.title}",
        "encoder": plan.encoder,
        "decoder": plan.decoder,
        "head": plan.head,
        "data": {
            "corpus": "pydoc",
            "tokenizer": {"name": "file", "path": str(tokenizer_path(source))},
        },
        "train": {"learning_rate": 5e-5, "warmup_fraction": 0.1},
    }
    document = Document(data, {(): origin})
    for item in read_overrides(overrides):
        document = merge(document, absolute_paths(item.document(), Path.cwd()))
    if "max_length" not in document.data["data"]:
        length = _length(document, tokenizer)
        given = Document({"data": {"max_length": length}}, {(): origin})
        document = merge(document, given)
    heads = {**plan.tasks, **sentence.tasks}
    adapter: TypeAdapter[TaskConfig] = TypeAdapter(AnyTaskConfig)
    tasks = {name: adapter.validate_python(head) for name, head in heads.items()}
    return recipe_from_document(document), tasks


def tokenizer_path(source: Source) -> Path:
    """Return where the recipe looks for the tokenizer."""
    return source.weights_folder.resolve() / "tokenizer.json"


def _length(document: Document, tokenizer: TokenizerFacts) -> int:
    """Return the length of rows: what encoder, decoder and tokenizer take, at most the usual one."""
    trial = {**document.data, "data": {**document.data["data"], "max_length": 4}}
    recipe = recipe_from_document(Document(trial, document.origins))
    encoder: EncoderConfig = recipe.encoder
    limits = [encoder.max_length(), recipe.decoder.max_length(), tokenizer.max_length]
    return min([limit for limit in limits if limit is not None] + [USUAL_LENGTH])
