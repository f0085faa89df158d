"""`copy`: x_1 .. x_n [SEP] n masks, then [SEP] to the end of the row; each mask stands for its symbol.

n is uniform between a quarter of the row and as much as fits, so that rows twice as long hold
strictly more symbols than any row of the training length.
"""

from typing import Literal, final

import numpy as np
from typing_extensions import override

from posattn.training.exercises.base import (
    MASK,
    NOTHING,
    SEPARATOR,
    Exercise,
    ExerciseConfig,
    Posed,
    Symbols,
)
from posattn.training.objectives.base import objectives
from posattn.training.text.draws import Purpose


class CopyConfig(ExerciseConfig):
    """`copy` has no options."""

    name: Literal["copy"] = "copy"

    @override
    def least_length(self) -> int:
        return 3

    @override
    def targets_in(self, length: int) -> float:
        least, most = self.sizes(length)
        return (least + most) / 2

    @override
    def statement(self) -> str:
        return "x_1 .. x_n [SEP] [MASK] * n, n variable: repeat the symbols"

    def sizes(self, length: int) -> tuple[int, int]:
        """Return the smallest and the largest n in rows of this length."""
        most = (length - 1) // 2
        return min(length // 4, most), most


@final
@objectives.register("copy")
class Copy(Exercise):
    """Repeat a string whose length differs from row to row."""

    Config = CopyConfig
    config: CopyConfig

    @override
    def pose(self, symbols: Symbols) -> Posed:
        least, most = self.config.sizes(symbols.length)
        sizes = least + (symbols.by_row(Purpose.SIZES, 1) * (most - least + 1)).astype(np.int64)
        places = np.arange(symbols.length)
        is_answer = (places > sizes) & (places <= 2 * sizes)
        sources = np.where(is_answer, places - sizes - 1, 0)
        copied = np.take_along_axis(symbols.values, sources, axis=1)
        seen = np.where(places < sizes, symbols.values, np.where(is_answer, MASK, SEPARATOR))
        return Posed(seen, np.where(is_answer, copied, NOTHING))
