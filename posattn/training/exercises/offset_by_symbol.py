"""`offset_by_symbol`: y_i = x_(i-k) with k = 1 + x_i mod reaches, stated by the symbol that asks."""

from typing import Literal, final

import numpy as np
from pydantic import Field
from typing_extensions import override

from posattn.training.exercises.base import NOTHING, Exercise, ExerciseConfig, Posed, Symbols
from posattn.training.objectives.base import objectives


class OffsetBySymbolConfig(ExerciseConfig):
    """Options of `offset_by_symbol`."""

    name: Literal["offset_by_symbol"] = "offset_by_symbol"
    reaches: int = Field(default=8, ge=2)
    """How many distances there are: 1 to this."""

    @override
    def least_symbols(self, length: int) -> int:
        return self.reaches

    @override
    def targets_in(self, length: int) -> float:
        return max(0.0, length - (self.reaches + 1) / 2)

    @override
    def statement(self) -> str:
        return f"y_i = x_(i - k), k = 1 + x_i mod {self.reaches}"


@final
@objectives.register("offset_by_symbol")
class OffsetBySymbol(Exercise):
    """Fetch the symbol at the distance that the asking symbol states."""

    Config = OffsetBySymbolConfig
    config: OffsetBySymbolConfig

    @override
    def pose(self, symbols: Symbols) -> Posed:
        sources = np.arange(symbols.length) - 1 - symbols.values % self.config.reaches
        answers = np.take_along_axis(symbols.values, np.maximum(sources, 0), axis=1)
        return Posed(symbols.values, np.where(sources >= 0, answers, NOTHING))
