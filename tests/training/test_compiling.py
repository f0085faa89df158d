"""`train.compile`: refused where nothing compiles, counted where it does."""

import shutil

import pytest
import torch
from torch import nn

from posattn.errors import IncompatibleParts
from posattn.recipe.check import check_recipe
from posattn.recipe.schema import load_recipe
from posattn.training.compiling import check_compiler, compile_model

CPU = torch.device("cpu")


def test_without_a_compiler_the_recipe_is_refused_before_anything_runs(monkeypatch):
    recipe = load_recipe("rope", overrides=["train.compile=true"])
    check_recipe(recipe)
    monkeypatch.setattr(shutil, "which", lambda name: None)
    with pytest.raises(IncompatibleParts, match=r"needs a C\+\+ compiler.*train.compile to false"):
        check_recipe(recipe)
    check_recipe(load_recipe("rope"))
    check_compiler(torch.device("cuda"))  # Triton brings its own


def test_graphs_are_counted_when_they_are_made(monkeypatch):
    monkeypatch.setattr("torch._dynamo.backends.registry.lookup_backend", lambda name: _as_it_is)
    torch.compiler.reset()
    model = nn.Linear(2, 3)
    graphs = compile_model(model, CPU)
    assert graphs.count == 0
    for rows in (2, 5, 7):
        model(torch.zeros(rows, 2))
    assert graphs.count == 1


def _as_it_is(graph, inputs):
    return graph
