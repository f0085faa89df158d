"""A bias that is a function of head and distance alone (ALiBi, KERPLE)."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeAlias, final, no_type_check

import torch
from torch import Tensor
from typing_extensions import override

from posattn.bias.base import AttentionBias, ScoreMod
from posattn.bias.gathered import BucketScores
from posattn.lazy import cached_property
from posattn.positions import Relation
from posattn.shapes import Logits

DistanceFunction: TypeAlias = Callable[[Tensor, Tensor], Tensor]
"""(distance, head) -> bias, for integer tensors that broadcast against each other."""


@final
@dataclass(frozen=True)
class DistanceBias(AttentionBias):
    """`bias[b, h, i, j] = function(distance[b, i, j], h)`.

    The function is taken once for every distance that can occur, not for every pair. `shared` says
    that several layers of one forward are handed this object: the whole bias is then computed once and
    kept, for one backward pass.
    """

    name: str
    distance: Relation
    num_heads: int
    function: DistanceFunction
    shared: bool = False

    @cached_property
    def _whole(self) -> BucketScores:
        return self._compute()

    def _by_distance(self) -> BucketScores:
        return self._whole if self.shared else self._compute()

    def _compute(self) -> BucketScores:
        values, which = self.distance.distinct()
        head = torch.arange(self.num_heads, device=values.device)
        scores_HR = self.function(values[None, :], head[:, None])
        return BucketScores(self.name, scores_HR, which, self.shared)

    @override
    def parts(self) -> tuple[AttentionBias, ...]:
        return (self._by_distance(),)

    @override
    def learns(self) -> bool:
        return self._by_distance().learns()

    @override
    def materialize(self) -> Logits:
        return self._by_distance().materialize()

    @override
    def terms(self) -> Mapping[str, Logits]:
        return self._by_distance().terms()

    @override
    def score_mod(self) -> ScoreMod:
        distance, function = self.distance.at(), self.function

        @no_type_check
        def add_bias(score: Tensor, b: Tensor, h: Tensor, i: Tensor, j: Tensor) -> Tensor:
            return score + function(distance(b, i, j), h)

        mod: ScoreMod = add_bias
        return mod
