"""`twin_masks`: periodic text with two masks whose neighbours are the same; which period is each in?

The "a new store opened beside the new mall" argument for the enhanced mask decoder (He et al. 2021,
section 3.2) in miniature: content cannot tell the two places apart, absolute position can.

With `edges: visible` the text starts where the row starts, so distances to the edges tell the period
too. With `edges: hidden` the row is cut at a random place out of an endless periodic text, which is
filler of random length on both sides, and positions are given that count within that text. The cut is
uniform over `classes` periods, so what is seen says nothing at all about the period.
"""

from typing import Literal, final

import numpy as np
from pydantic import Field
from typing_extensions import override

from posattn.training.exercises.base import MASK, NOTHING, Exercise, ExerciseConfig, Posed, Symbols
from posattn.training.objectives.base import Ids, objectives
from posattn.training.text.draws import Purpose


class TwinMasksConfig(ExerciseConfig):
    """Options of `twin_masks`."""

    name: Literal["twin_masks"] = "twin_masks"
    period: int = Field(default=8, ge=2)
    """Symbols after which the text repeats itself; rows hold at least two periods."""
    classes: int = Field(default=4, ge=2)
    """The answer is the number of the mask's period modulo this."""
    edges: Literal["visible", "hidden"] = "visible"

    @override
    def least_symbols(self, length: int) -> int:
        return self.classes

    @override
    def least_length(self) -> int:
        return 2 * self.period

    @override
    def targets_in(self, length: int) -> float:
        return 2.0

    @override
    def statement(self) -> str:
        return (
            f"text of period {self.period}, two masks at the same phase, "
            f"y_i = (position // {self.period}) mod {self.classes}, edges {self.edges}"
        )

    def longest_cut(self) -> int:
        """Return the largest position that a row can start at."""
        return self.period * self.classes - 1 if self.edges == "hidden" else 0


@final
@objectives.register("twin_masks")
class TwinMasks(Exercise):
    """Two masks with the same neighbours."""

    Config = TwinMasksConfig
    config: TwinMasksConfig

    @override
    def places(self, symbols: Symbols) -> Ids | None:
        return None if self.config.edges == "visible" else self._places(symbols)

    @override
    def pose(self, symbols: Symbols) -> Posed:
        period = self.config.period
        repeated = symbols.values[:, np.arange(symbols.length) % period]
        chosen = self._twins(symbols)
        seen = repeated.copy()
        answers = np.full_like(seen, NOTHING)
        periods = np.take_along_axis(self._places(symbols), chosen, axis=1) // period
        np.put_along_axis(seen, chosen, MASK, axis=1)
        np.put_along_axis(answers, chosen, periods % self.config.classes, axis=1)
        return Posed(seen, answers)

    def _places(self, symbols: Symbols) -> Ids:
        cuts = self.config.longest_cut() + 1
        start = (symbols.by_row(Purpose.SIZES, 1) * cuts).astype(np.int64)
        return start + np.arange(symbols.length)

    def _twins(self, symbols: Symbols) -> Ids:
        """Return two columns of each row, some whole periods apart."""
        period = self.config.period
        whole = symbols.length // period
        first, second, phase = symbols.by_row(Purpose.PLACES, 3).T
        one = (first * whole).astype(np.int64)
        other = (second * (whole - 1)).astype(np.int64)
        other = other + (other >= one)
        return (np.stack([one, other], axis=1) * period) + (phase * period).astype(np.int64)[
            :, None
        ]
