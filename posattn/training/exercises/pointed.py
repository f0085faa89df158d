"""`pointed`: every symbol states where it points, and every place is asked what points at it.

A symbol is a pair (displacement d, payload), number payload * (2 reach + 1) + d + reach. Rows are
cut into blocks of reach + 1 places, the first one shorter by chance, and in each block the
pointers are a random permutation: exactly one symbol points at each place, from at most `reach`
places away on either side. The answer at i is the payload of the symbol at j with j + d_j = i.
"""

from typing import Literal, final

import numpy as np
from pydantic import Field
from typing_extensions import override

from posattn.training.exercises.base import Exercise, ExerciseConfig, Posed, Symbols
from posattn.training.objectives.base import objectives
from posattn.training.text.draws import Purpose


class PointedConfig(ExerciseConfig):
    """Options of `pointed`."""

    name: Literal["pointed"] = "pointed"
    reach: int = Field(default=5, ge=1)
    """The largest distance of a pointer from its place; there are 2 reach + 1 displacements."""
    payloads: int = Field(default=4, ge=2)
    """How many answers there are."""

    @override
    def least_symbols(self, length: int) -> int:
        return self.payloads * (2 * self.reach + 1)

    @override
    def statement(self) -> str:
        return (
            f"y_i = payload of x_j with j + d(x_j) = i, d from -{self.reach} to {self.reach}, "
            f"{self.payloads} payloads"
        )


@final
@objectives.register("pointed")
class Pointed(Exercise):
    """Find the symbol that points here: what is sought is stated by the key, not by the query."""

    Config = PointedConfig
    config: PointedConfig

    @override
    def pose(self, symbols: Symbols) -> Posed:
        reach, places = self.config.reach, np.arange(symbols.length)
        shift = symbols.by_row(Purpose.SIZES, 1) * (reach + 1)
        blocks = (places + shift.astype(np.int64)) // (reach + 1)
        pointers = np.argsort(blocks + symbols.by_place(Purpose.PLACES), axis=1, kind="stable")
        payloads = symbols.values % self.config.payloads
        displacements = np.empty_like(pointers)
        np.put_along_axis(displacements, pointers, places - pointers, axis=1)
        seen = payloads * (2 * reach + 1) + displacements + reach
        return Posed(seen, np.take_along_axis(payloads, pointers, axis=1))
