"""A small recipe for the tests of this folder, and a helper that reads refusals."""

import pytest

from posattn.errors import RecipeError
from posattn.recipe.schema import load_recipe

TINY = """\
encoder:
  hidden_size: 32
  num_layers: 2
  num_heads: 4
  hidden_dropout: 0.0
  attention_dropout: 0.0
  mechanism: {name: rope}
data:
  corpus: {name: pydoc}
  tokenizer: {name: characters, vocab_size: 50}
  max_length: 16
train:
  steps: 3
  batch_size: 4
"""


@pytest.fixture
def tiny(tmp_path):
    """The path of a small recipe."""
    path = tmp_path / "tiny.yaml"
    path.write_text(TINY)
    return path


@pytest.fixture
def refused(tiny):
    """A function from overrides of the small recipe to the message that refuses them."""

    def message(*overrides, path=tiny):
        with pytest.raises(RecipeError) as caught:
            load_recipe(path, list(overrides))
        return str(caught.value)

    return message
