"""The sum of several biases, each term under its own name."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import final, no_type_check

from torch import Tensor
from typing_extensions import override

from posattn.bias.base import AttentionBias, ScoreMod
from posattn.shapes import Logits


@final
@dataclass(frozen=True)
class SumBias(AttentionBias):
    """The sum of `summands`, of which there is at least one."""

    summands: tuple[AttentionBias, ...]

    @override
    def parts(self) -> tuple[AttentionBias, ...]:
        return tuple(part for summand in self.summands for part in summand.parts())

    @override
    def learns(self) -> bool:
        return any(summand.learns() for summand in self.summands)

    @override
    def factored(self) -> tuple[AttentionBias, ...]:
        return tuple(part for summand in self.summands for part in summand.factored())

    @override
    def materialize(self) -> Logits:
        total = self.summands[0].materialize()
        for part in self.summands[1:]:
            total = total + part.materialize()
        return total

    @override
    def terms(self) -> Mapping[str, Logits]:
        named: dict[str, Logits] = {}
        for part in self.summands:
            for name, value in part.terms().items():
                named[name] = named[name] + value if name in named else value
        return named

    @override
    def score_mod(self) -> ScoreMod:
        mods = [part.score_mod() for part in self.summands]

        @no_type_check
        def add_bias(score: Tensor, b: Tensor, h: Tensor, i: Tensor, j: Tensor) -> Tensor:
            for mod in mods:
                score = mod(score, b, h, i, j)
            return score

        mod: ScoreMod = add_bias
        return mod


def total_bias(parts: Sequence[AttentionBias | None]) -> AttentionBias | None:
    """Return the sum of the given biases, leaving out the absent ones; None if all are absent."""
    present = tuple(part for part in parts if part is not None)
    if len(present) > 1:
        return SumBias(present)
    return present[0] if present else None
