"""What a recipe's text means for budgets: the size of the vocabulary, and the tokens of a step."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from posattn.recipe.schema import Recipe
from posattn.training.text.prepare import Split, prepare

MOST_ROWS = 2000
"""So many rows, evenly spread, are looked at to learn how full rows are."""


@dataclass(frozen=True)
class TextCounts:
    """The vocabulary, the rows of an epoch, and the visible tokens of a row in the mean."""

    vocab_size: int
    rows: int
    tokens_per_row: float

    def tokens_per_step(self, recipe: Recipe) -> float:
        """Return the tokens of an optimizer step in the mean over an epoch.

        The last batch and the last step of an epoch take what is left, so an epoch has
        ceil(ceil(rows / batch_size) / accumulation) steps.
        """
        batches = -(-self.rows // recipe.train.batch_size)
        steps = -(-batches // recipe.train.accumulation)
        return self.rows * self.tokens_per_row / steps


CountText = Callable[[Recipe], TextCounts]


def count_text(recipe: Recipe) -> TextCounts:
    """Return the counts of the recipe's training text, which is prepared if it is not yet."""
    corpus = prepare(recipe.data)
    return TextCounts(corpus.tokenizer.vocab_size, len(corpus.train), _tokens_per_row(corpus.train))


def _tokens_per_row(split: Split) -> float:
    """Return the mean number of visible tokens; packed rows are full, padded ones are not."""
    samples, number = split.samples, len(split)
    if split.layout.kind == "packed":
        return float(split.layout.max_length)
    chosen = np.unique(np.linspace(0, number - 1, min(number, MOST_ROWS)).astype(np.int64))
    visible = samples.rows(chosen).visible
    return float(visible.sum()) / len(chosen)
