"""`needle`: some key symbols lie in a haystack of others; at the end each key asks what follows it.

Symbols 0 to keys - 1 are the keys, the others the haystack. Each row holds every key once at a random
place, never last in its slot of two; the last `keys` places repeat the keys in random order, and the
answer there is the symbol that followed the key in the haystack.
"""

from typing import Literal, final

import numpy as np
from pydantic import Field
from typing_extensions import override

from posattn.training.exercises.base import NOTHING, Exercise, ExerciseConfig, Posed, Symbols
from posattn.training.objectives.base import Ids, objectives
from posattn.training.text.draws import Purpose


class NeedleConfig(ExerciseConfig):
    """Options of `needle`."""

    name: Literal["needle"] = "needle"
    keys: int = Field(default=2, ge=1)
    """How many keys there are, all of them in every row, each asked about once."""

    @override
    def least_symbols(self, length: int) -> int:
        return self.keys + 2

    @override
    def least_length(self) -> int:
        return 3 * self.keys

    @override
    def targets_in(self, length: int) -> float:
        return float(self.keys)

    @override
    def statement(self) -> str:
        return f"{self.keys} keys in a haystack; at the end each asks for the symbol after it"


@final
@objectives.register("needle")
class Needle(Exercise):
    """Recall what followed a key, however far away."""

    Config = NeedleConfig
    config: NeedleConfig

    @override
    def pose(self, symbols: Symbols) -> Posed:
        keys, length = self.config.keys, symbols.length
        rows = np.arange(len(symbols.values))[:, None]
        places = 2 * _shuffled(symbols, Purpose.PLACES, (length - keys) // 2)[:, :keys]
        asked = _shuffled(symbols, Purpose.CONTENT, keys)
        seen = keys + symbols.values % (self.num_symbols - keys)
        seen[rows, places] = np.arange(keys)
        seen[:, length - keys :] = asked
        answers = np.full_like(seen, NOTHING)
        answers[:, length - keys :] = seen[rows, places[rows, asked] + 1]
        return Posed(seen, answers)


def _shuffled(symbols: Symbols, purpose: Purpose, count: int) -> Ids:
    """Return the numbers below `count` in a random order for each row."""
    return np.argsort(symbols.by_row(purpose, count), axis=1, kind="stable")
