"""A benchmark that takes a moment, and encoders for it that are not real."""

from typing import Any

import torch
from torch import nn

from posattn.bench.entrant import Rival, States, Weights
from posattn.bench.inputs import Ids, Visible
from posattn.bench.plan import BenchPlan, Cell, ModelSize, Stage

SIZE = ModelSize(hidden_size=32, num_heads=2, num_layers=1, intermediate_size=64, vocab_size=32)


def plan(**options: Any) -> BenchPlan:
    given = {"size": SIZE, "cells": (Cell(batch_size=2, length=8),), "rounds": 2, "seconds": 0.0}
    return BenchPlan(**{**given, "memory": "none", **options})


class Made(Rival):
    """A rival that needs no other library: `function` makes its states from random ones."""

    library = "made"
    package = "torch"
    same_function = False
    function: Any

    def build(self, size: ModelSize, stage: Stage, device: torch.device) -> nn.Module:
        return nn.Embedding(size.vocab_size, size.hidden_size)

    def weights(self, model: nn.Module) -> Weights:
        return {}

    def states(self, model: nn.Module, ids: Ids, visible: Visible | None = None) -> States:
        return type(self).function(model(ids))


def made(given: str, does: Any, **attributes: Any) -> type[Made]:
    """Return a rival of this name whose states are what `does` makes of random ones."""
    return type("Stub", (Made,), {"name": given, "function": staticmethod(does), **attributes})
