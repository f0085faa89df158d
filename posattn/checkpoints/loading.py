"""`from_pretrained` and `import_checkpoint`: a source to a model, and to a folder that training takes."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from tokenizers import Tokenizer

from posattn.checkpoints.choose import choose_family
from posattn.checkpoints.families.base import Plan
from posattn.checkpoints.mapping import Mapped, apply_table
from posattn.checkpoints.own import is_own_folder, load_own_folder
from posattn.checkpoints.parts import Parts
from posattn.checkpoints.pretrained import Pretrained
from posattn.checkpoints.report import ImportReport, TokenizerFacts, refusal
from posattn.checkpoints.sections import imported_recipe
from posattn.checkpoints.sentence import SentencePart, find_sentence_part
from posattn.checkpoints.settings import Settings
from posattn.checkpoints.source import Source, open_source
from posattn.checkpoints.tokenizer import find_tokenizer
from posattn.checkpoints.writing import check_target, write_folder
from posattn.encoder.tasks import TaskConfig
from posattn.errors import CheckpointError
from posattn.recipe.resolve import Overrides
from posattn.recipe.schema import Recipe
from posattn.training.weights import Unmatched, shapes


@dataclass(frozen=True)
class _Found:
    """All that was read from a source."""

    source: Source
    family: str
    settings: Settings
    plan: Plan
    sentence: SentencePart
    tokenizer: Tokenizer | None
    facts: TokenizerFacts


def import_checkpoint(
    source: str | Path,
    out: str | Path,
    *,
    overrides: Overrides = (),
    accept_unused: Sequence[str] = (),
    accept_new: Sequence[str] = (),
) -> ImportReport:
    """Write a checkpoint as a folder that `posattn train` and `from_pretrained` take; return the report.

    The folder holds recipe.yaml, model.safetensors, tokenizer.json and import.json. Nothing is written if
    anything is refused; see `from_pretrained`.
    """
    check_target(Path(out))
    made = from_pretrained(
        source, overrides=overrides, accept_unused=accept_unused, accept_new=accept_new
    )
    write_folder(made, Path(out))
    return made.report


def from_pretrained(
    source: str | Path,
    *,
    overrides: Overrides = (),
    accept_unused: Sequence[str] = (),
    accept_new: Sequence[str] = (),
) -> Pretrained:
    """Return the model in a folder, or of the Hugging Face hub, in evaluation mode.

    A folder is a checkpoint as transformers or Microsoft's DeBERTa saves it, the output of
    `posattn import`, `swap` or `export`, or `final` of a run. `overrides` change the recipe that the
    config gives.
    CheckpointError if a stored tensor is unused or a parameter new, unless a pattern (`*` for any part)
    names it; new ones start as `train.seed` says. No code of the checkpoint is executed.
    """
    opened = open_source(source)
    if is_own_folder(opened.folder):
        return load_own_folder(opened.folder, overrides, accept_unused, accept_new)
    family = choose_family(opened)
    stored = opened.tensors()
    settings = Settings(opened.config, opened.name)
    plan = family.plan(settings, shapes(stored))
    tokenizer, facts = find_tokenizer(opened)
    sentence = find_sentence_part(opened)
    found = _Found(opened, family.name, settings, plan, sentence, tokenizer, facts)
    recipe, tasks = imported_recipe(opened, plan, sentence, facts, overrides)
    _check_ids(_rows(recipe), facts)
    parts = Parts(recipe, tasks, plan.has_head, _rows(recipe))
    mapped = apply_table(plan.table, stored, parts.shapes())
    _check_accepted(opened, mapped, accept_unused, accept_new)
    masked_lm, task_model = parts.build(mapped.tensors)
    return Pretrained(recipe, masked_lm, task_model, tokenizer, _report(found, mapped, tasks))


def _rows(recipe: Recipe) -> int:
    """Return the rows of the token table; without a number the tokenizer would decide."""
    if recipe.encoder.token_rows is None:
        raise CheckpointError("encoder.token_rows is null; the rows of a stored table are a number")
    return recipe.encoder.token_rows


def _check_ids(rows: int, facts: TokenizerFacts) -> None:
    if facts.vocab_size is not None and facts.vocab_size > rows:
        raise CheckpointError(
            f"the tokenizer ({facts.file}) has ids up to {facts.vocab_size - 1}, but the token table has "
            f"{rows} rows: tokenizer and weights do not belong together"
        )


def _check_accepted(
    source: Source, mapped: Mapped, accept_unused: Sequence[str], accept_new: Sequence[str]
) -> None:
    found = Unmatched(tuple(mapped.new), tuple(mapped.unused)).refused(accept_new, accept_unused)
    if found.new or found.unused:
        named = source.config.get("architectures")
        hint = (
            "."
            if named
            else "; config.json names no architecture, which would say what heads are for."
        )
        raise CheckpointError(refusal(source.name, found, hint))


def _report(found: _Found, mapped: Mapped, tasks: dict[str, TaskConfig]) -> ImportReport:
    notes = [*found.plan.notes, *found.sentence.notes, *_notes(mapped)]
    if found.tokenizer is None:
        notes.append("no tokenizer file was found; training needs a tokenizer.json in the folder")
    if not found.plan.has_head:
        notes.append("there is no masked-token head; training starts a new one")
    limits = [found.sentence.max_length, found.facts.max_length]
    known = [limit for limit in limits if limit is not None]
    return ImportReport(
        source=found.source.name,
        family=found.family,
        architecture=found.settings.architecture(),
        digests=found.source.digests(),
        entries=tuple(mapped.entries),
        unused=tuple(mapped.unused),
        new=tuple(mapped.new),
        tasks={name: head.model_dump(mode="json") for name, head in tasks.items()},
        labels=found.settings.labels(),
        has_masked_token_head=found.plan.has_head,
        text_length=min(known, default=None),
        tokenizer=found.facts,
        notes=tuple(notes),
    )


def _notes(mapped: Mapped) -> list[str]:
    """Return what the account says in passing: derived tensors, and lower precision."""
    notes = [f"{entry.old}: {entry.how}" for entry in mapped.entries if entry.fate == "derived"]
    narrow = sorted({e.dtype for e in mapped.entries if e.dtype in ("float16", "bfloat16")})
    if narrow:
        notes.append(f"stored as {', '.join(narrow)}; weights are {torch.get_default_dtype()} here")
    return notes
