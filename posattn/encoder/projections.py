"""Several projections of the same states as one product, where no gradient is recorded."""

from collections.abc import Sequence
from typing import TypeAlias, final

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional

from posattn.mechanisms.weight_cache import WeightCache
from posattn.shapes import KeyHidden

Stacked: TypeAlias = Float[Tensor, "batch key stacked"]


@final
class StackedProjections:
    """Projections applied at once; their weights, side by side, are kept until one of them changes."""

    def __init__(self) -> None:
        """Start with nothing kept."""
        self._weight, self._bias = WeightCache(), WeightCache()

    def takes(self, projections: Sequence[nn.Linear]) -> bool:
        """Return whether the projections do what their weights say, and no gradient is recorded."""
        plain = all(type(projection) is nn.Linear for projection in projections)
        return plain and not torch.is_grad_enabled() and not torch.compiler.is_exporting()

    def __call__(self, projections: Sequence[nn.Linear], hidden: KeyHidden) -> Stacked:
        """Return what the projections return, side by side."""
        weights = [projection.weight for projection in projections]
        weight = self._weight.get(weights, lambda: torch.cat(weights))
        return functional.linear(hidden, weight, self._stacked_bias(projections))

    def _stacked_bias(self, projections: Sequence[nn.Linear]) -> Tensor | None:
        """Return the biases side by side, with zeros for a projection that has none."""
        biases = [each.bias for each in projections if each.bias is not None]

        def stack() -> Tensor:
            zeros = torch.zeros_like(projections[0].weight[:, 0])
            return torch.cat([zeros if each.bias is None else each.bias for each in projections])

        return self._bias.get(biases, stack) if biases else None
