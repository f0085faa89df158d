"""A bias that is already a tensor."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import final, no_type_check

from torch import Tensor
from typing_extensions import override

from posattn.bias.base import AttentionBias, ScoreMod
from posattn.shapes import Logits


@final
@dataclass(frozen=True)
class DenseBias(AttentionBias):
    """`bias[b, h, i, j] = value[b, h, i, j]`; size-1 axes broadcast (a bias of keys has query size 1)."""

    name: str
    value: Logits

    @override
    def learns(self) -> bool:
        return self.value.requires_grad

    @override
    def materialize(self) -> Logits:
        return self.value

    @override
    def terms(self) -> Mapping[str, Logits]:
        return {self.name: self.value}

    @override
    def score_mod(self) -> ScoreMod:
        value = self.value
        batches, heads, queries, keys = value.shape

        @no_type_check
        def add_bias(score: Tensor, b: Tensor, h: Tensor, i: Tensor, j: Tensor) -> Tensor:
            return (
                score
                + value[
                    b if batches > 1 else 0,
                    h if heads > 1 else 0,
                    i if queries > 1 else 0,
                    j if keys > 1 else 0,
                ]
            )

        mod: ScoreMod = add_bias
        return mod
