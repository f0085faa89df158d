"""`offset`: y_i = x_(i-k), the symbol a fixed number of places away (negative k: to the right)."""

from typing import Literal, final

import numpy as np
from pydantic import Field, field_validator
from typing_extensions import override

from posattn.training.exercises.base import NOTHING, Exercise, ExerciseConfig, Posed, Symbols
from posattn.training.objectives.base import objectives


class OffsetConfig(ExerciseConfig):
    """Options of `offset`."""

    name: Literal["offset"] = "offset"
    offset: int = Field(default=3)
    """k; places without a symbol k places before them are not asked about."""

    @field_validator("offset")
    @classmethod
    def _goes_somewhere(cls, offset: int) -> int:
        if offset == 0:
            raise ValueError("offset 0 asks for the symbol that is seen anyway; give another")
        return offset

    @override
    def targets_in(self, length: int) -> float:
        return float(max(0, length - abs(self.offset)))

    @override
    def statement(self) -> str:
        return (
            f"y_i = x_(i - {self.offset})" if self.offset > 0 else f"y_i = x_(i + {-self.offset})"
        )


@final
@objectives.register("offset")
class Offset(Exercise):
    """Fetch the symbol at a fixed distance."""

    Config = OffsetConfig
    config: OffsetConfig

    @override
    def pose(self, symbols: Symbols) -> Posed:
        sources = np.arange(symbols.length) - self.config.offset
        inside = (sources >= 0) & (sources < symbols.length)
        answers = symbols.values[:, np.where(inside, sources, 0)]
        return Posed(symbols.values, np.where(inside, answers, NOTHING))
