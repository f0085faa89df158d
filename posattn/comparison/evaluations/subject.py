"""The trained model that evaluations look at, with the text it was trained on."""

from dataclasses import dataclass, field
from pathlib import Path

import torch

from posattn.encoder.model import MaskedLanguageModel
from posattn.recipe.build import build
from posattn.recipe.schema import Recipe
from posattn.training.batches import validation_batches
from posattn.training.evaluate import Evaluation as Scores
from posattn.training.evaluate import evaluate
from posattn.training.run_folder import RunFolder
from posattn.training.text.prepare import TokenisedCorpus, prepare
from posattn.training.weights import load_weights

MASK_SEED = 0
"""Validation masks are the same in all runs of a study, whatever their seeds, so that runs pair up."""


@dataclass
class Subject:
    """A trained model; passes over the validation text are made once and shared by evaluations."""

    model: MaskedLanguageModel
    recipe: Recipe
    corpus: TokenisedCorpus
    folder: Path
    _scores: dict[tuple[int, int | None], Scores] = field(default_factory=dict)

    @classmethod
    def load(cls, folder: Path, recipe: Recipe) -> "Subject":
        """Return the model that the finished run in `folder` has saved."""
        corpus = prepare(recipe.data)
        model = build(recipe, corpus.tokenizer.vocab_size).to(device_of(recipe))
        load_weights(model, RunFolder(folder).final / "model.safetensors")
        return cls(model, recipe, corpus, folder)

    @property
    def length(self) -> int:
        """Return the length that the model was trained at."""
        return self.recipe.data.max_length

    def max_length(self) -> int | None:
        """Return the longest sequence that the model takes, or None."""
        return self.model.max_length()

    def backend(self) -> str:
        """Return the names of the backends that computed attention so far."""
        return " and ".join(self.model.encoder.backend.ran())

    def scores(self, length: int, tokens: int | None) -> Scores:
        """Return the scores on at most `tokens` tokens of validation text, in rows of `length`.

        Batches hold about as many tokens at every length. Raises `IncompatibleParts` if the model
        cannot take the length, `DataError` if the text fills no row of it.
        """
        key = (length, tokens)
        if key not in self._scores:
            recipe = self.recipe
            batches = validation_batches(
                self.corpus.validation,
                recipe.objective,
                length=length,
                batch_size=max(1, recipe.train.batch_size * self.length // length),
                seed=MASK_SEED,
                limit_tokens=tokens,
            )
            self._scores[key] = evaluate(
                self.model, batches, device_of(recipe), recipe.train.precision
            )
        return self._scores[key]


def device_of(recipe: Recipe) -> torch.device:
    """Return the device that the recipe's training uses here."""
    asked = recipe.train.device
    if asked == "auto":
        asked = "cuda" if torch.cuda.is_available() else "cpu"
    return torch.device(asked)
