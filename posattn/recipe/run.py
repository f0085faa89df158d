"""From a recipe to a training run: its text, its batches and its model, handed to the loop."""

from collections.abc import Callable, Collection, Iterable, Mapping
from pathlib import Path
from typing import Any

from torch import nn

from posattn.encoder.model import MaskedLanguageModel, position_parameters
from posattn.recipe.build import build
from posattn.recipe.check import check_inputs
from posattn.recipe.schema import Recipe, dump_recipe
from posattn.training.batches import Batch, BatchStream, validation_batches
from posattn.training.loop import train_run
from posattn.training.run_inputs import Progress, RunData, RunResult, TrainingJob
from posattn.training.text.prepare import TokenisedCorpus, prepare

VALIDATION_SEED = 0
"""Validation targets are the same in all runs of all seeds, so that their losses are comparable."""


def training_job(recipe: Recipe) -> TrainingJob:
    """Return the run that a recipe describes; text and model are made when it starts.

    Raises `IncompatibleParts` if the encoder needs more than the tokens of a text.
    """
    check_inputs(recipe)
    return TrainingJob(
        recipe_text=dump_recipe(recipe),
        config=recipe.train,
        data=lambda tell: run_data(recipe, prepare(recipe.data, progress=tell)),
        build=lambda vocab_size: build(recipe, vocab_size),
        position_parameters=_position_parameters,
        attention=_attention,
    )


def run_data(recipe: Recipe, corpus: TokenisedCorpus) -> RunData:
    """Return a recipe's batches of a prepared corpus."""
    train = recipe.train

    def validation() -> Iterable[Batch]:
        return validation_batches(
            corpus.validation,
            recipe.objective,
            batch_size=train.batch_size,
            seed=VALIDATION_SEED,
            limit_tokens=train.evaluation_tokens,
        )

    return RunData(
        batches=BatchStream(
            corpus.train,
            recipe.objective,
            batch_size=train.batch_size,
            seed=train.order_seed,
            workers=train.workers,
        ),
        validation=validation,
        vocab_size=corpus.tokenizer.vocab_size,
        info=corpus.info.model_dump(mode="json"),
        save_tokenizer=corpus.tokenizer.save,
    )


def train_recipe(
    recipe: Recipe,
    out: str | Path,
    *,
    resume: bool = False,
    progress: Callable[[Progress], None] | None = None,
) -> RunResult:
    """Train the recipe into the run folder `out` and return how it ended; see `train_run`."""
    return train_run(training_job(recipe), out, resume=resume, progress=progress)


def _position_parameters(model: nn.Module) -> Collection[str]:
    return position_parameters(_built(model))


def _attention(model: nn.Module) -> Mapping[str, Any]:
    backend = _built(model).encoder.backend
    return {"asked": backend.name, "computed": backend.ran()}


def _built(model: nn.Module) -> MaskedLanguageModel:
    if not isinstance(model, MaskedLanguageModel):
        raise TypeError(f"a recipe builds a MaskedLanguageModel, not a {type(model).__name__}")
    return model
