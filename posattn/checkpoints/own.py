"""Folders that posattn wrote: `final` of a run, and imports."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter
from tokenizers import Tokenizer

from posattn.cache import file_digest
from posattn.checkpoints.mapping import Entry
from posattn.checkpoints.parts import Parts
from posattn.checkpoints.pretrained import Pretrained
from posattn.checkpoints.report import ImportReport, TokenizerFacts, refusal
from posattn.checkpoints.tokenizer import read_tokenizer, vocab_size
from posattn.checkpoints.writing import RECIPE, REPORT, TOKENIZER, WEIGHTS
from posattn.encoder.tasks import AnyTaskConfig, TaskConfig
from posattn.errors import CheckpointError
from posattn.recipe.resolve import Overrides
from posattn.recipe.schema import load_recipe
from posattn.training.durable import read_json
from posattn.training.weights import Unmatched, read_tensors, shapes, unmatched

_TABLE = "encoder.tokens.weight"


def is_own_folder(folder: Path) -> bool:
    """Return whether posattn wrote this folder."""
    return (folder / RECIPE).is_file() and (folder / WEIGHTS).is_file()


def load_own_folder(
    folder: Path, overrides: Overrides, accept_unused: Sequence[str], accept_new: Sequence[str]
) -> Pretrained:
    """Return the model in a folder that posattn wrote; see `from_pretrained`."""
    stored = read_tensors(folder / WEIGHTS)
    if _TABLE not in stored:
        raise CheckpointError(f"{folder / WEIGHTS} holds no {_TABLE}, so it is no model of posattn")
    imported = read_json(folder / REPORT) if (folder / REPORT).is_file() else {}
    heads = imported.get("tasks", {})
    adapter: TypeAdapter[TaskConfig] = TypeAdapter(AnyTaskConfig)
    parts = Parts(
        recipe=load_recipe(folder / RECIPE, overrides),
        tasks={name: adapter.validate_python(head) for name, head in heads.items()},
        has_head=any(name.startswith("head.") for name in stored),
        rows=len(stored[_TABLE]),
    )
    found = unmatched(parts.shapes(), shapes(stored))
    refused = found.refused(accept_new, accept_unused)
    if refused.new or refused.unused:
        raise CheckpointError(refusal(str(folder), refused, "."))
    masked_lm, tasks = parts.build(
        {name: tensor for name, tensor in stored.items() if name not in found.unused}
    )
    path = folder / TOKENIZER
    tokenizer = read_tokenizer(path) if path.is_file() else None
    report = _report(folder, imported, parts, found, tokenizer)
    return Pretrained(parts.recipe, masked_lm, tasks, tokenizer, report)


def _report(
    folder: Path,
    imported: dict[str, Any],
    parts: Parts,
    found: Unmatched,
    tokenizer: Tokenizer | None,
) -> ImportReport:
    names = {name: shape for name, shape in parts.shapes().items() if name not in found.new}
    facts = imported.get("tokenizer", {})
    return ImportReport(
        source=str(folder),
        family="posattn",
        architecture=str(imported.get("architecture", "")),
        digests={WEIGHTS: file_digest(folder / WEIGHTS)},
        entries=tuple(
            Entry(name, (name,), shape, "float32", "mapped") for name, shape in names.items()
        ),
        unused=found.unused,
        new=found.new,
        tasks=dict(imported.get("tasks", {})),
        labels=tuple(imported.get("labels", ())),
        has_masked_token_head=parts.has_head,
        text_length=imported.get("text_length"),
        tokenizer=TokenizerFacts(
            file=None if tokenizer is None else TOKENIZER,
            vocab_size=vocab_size(tokenizer),
            max_length=facts.get("max_length"),
            special_tokens=dict(facts.get("special_tokens", {})),
        ),
        notes=tuple(imported.get("notes", ())),
    )
