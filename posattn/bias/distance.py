"""A bias that is a function of head and distance alone (ALiBi, KERPLE)."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TypeAlias, final, no_type_check

import torch
from torch import Tensor
from typing_extensions import override

from posattn.bias.base import AttentionBias, ScoreMod
from posattn.shapes import Logits, Pairs

DistanceFunction: TypeAlias = Callable[[Tensor, Tensor], Tensor]
"""(distance, head) -> bias, for integer tensors that broadcast against each other."""


@final
@dataclass(frozen=True)
class DistanceBias(AttentionBias):
    """`bias[b, h, i, j] = function(distance[b, i, j], h)`.

    `shared` says that several layers of one forward are handed this object: the whole bias is then
    computed once and kept, for one backward pass.
    """

    name: str
    distance: Pairs
    num_heads: int
    function: DistanceFunction
    shared: bool = False

    @cached_property
    def _whole(self) -> Logits:
        return self._compute()

    def _compute(self) -> Logits:
        head = torch.arange(self.num_heads, device=self.distance.device)
        return self.function(self.distance[:, None], head[None, :, None, None])

    @override
    def materialize(self) -> Logits:
        return self._whole if self.shared else self._compute()

    @override
    def terms(self) -> Mapping[str, Logits]:
        return {self.name: self.materialize()}

    @override
    def score_mod(self) -> ScoreMod:
        distance, function = self.distance, self.function
        batches = distance.shape[0]

        @no_type_check
        def add_bias(score: Tensor, b: Tensor, h: Tensor, i: Tensor, j: Tensor) -> Tensor:
            return score + function(distance[b if batches > 1 else 0, i, j], h)

        mod: ScoreMod = add_bias
        return mod
