"""From a recipe to its model."""

import torch

from posattn.encoder.init import initialize
from posattn.encoder.model import MaskedLanguageModel
from posattn.recipe.schema import Recipe


def build(recipe: Recipe, vocab_size: int | None = None) -> MaskedLanguageModel:
    """Return the recipe's model with its first weights, which depend on `train.seed` and their names.

    `vocab_size` is that of the finished tokenizer; by default the size the tokenizer section asks for,
    which a small text may not fill.
    """
    model = _construct(recipe, vocab_size)
    initialize(model, recipe.train.seed)
    return model


def build_on_meta(recipe: Recipe, vocab_size: int | None = None) -> MaskedLanguageModel:
    """Return the recipe's model without memory for its weights: to count, not to run."""
    with torch.device("meta"):
        return _construct(recipe, vocab_size)


def _construct(recipe: Recipe, vocab_size: int | None) -> MaskedLanguageModel:
    if vocab_size is None:
        vocab_size = recipe.data.tokenizer.expected_vocab_size()
    return MaskedLanguageModel(recipe.encoder, recipe.decoder, vocab_size, recipe.head)
