"""`index`: y_i = i // cell, where in the row a place is."""

from typing import Literal, final

import numpy as np
from pydantic import Field
from typing_extensions import override

from posattn.training.exercises.base import Exercise, ExerciseConfig, Posed, Symbols
from posattn.training.objectives.base import objectives


class IndexConfig(ExerciseConfig):
    """Options of `index`."""

    name: Literal["index"] = "index"
    cell: int = Field(default=1, ge=1)
    """Places that share an answer."""

    @override
    def least_symbols(self, length: int) -> int:
        return max(2, -(-length // self.cell))

    @override
    def statement(self) -> str:
        return "y_i = i" if self.cell == 1 else f"y_i = i // {self.cell}"


@final
@objectives.register("index")
class Index(Exercise):
    """Say where each symbol is; the symbols themselves tell nothing."""

    Config = IndexConfig
    config: IndexConfig

    @override
    def pose(self, symbols: Symbols) -> Posed:
        cells = np.arange(symbols.length) // self.config.cell
        return Posed(symbols.values, np.broadcast_to(cells, symbols.values.shape))
