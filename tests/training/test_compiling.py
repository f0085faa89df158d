"""`train.compile`: refused where nothing compiles; tests/compile has what it does."""

import shutil

import pytest
import torch

from posattn.errors import IncompatibleParts
from posattn.recipe.check import check_recipe
from posattn.recipe.schema import load_recipe
from posattn.training.compiling import check_compiler


def test_without_a_compiler_the_recipe_is_refused_before_anything_runs(monkeypatch):
    recipe = load_recipe("rope", overrides=["train.compile=true"])
    check_recipe(recipe)
    monkeypatch.setattr(shutil, "which", lambda name: None)
    with pytest.raises(IncompatibleParts, match=r"needs a C\+\+ compiler.*train.compile to false"):
        check_recipe(recipe)
    check_recipe(load_recipe("rope"))
    check_compiler(torch.device("cuda"))  # Triton brings its own
