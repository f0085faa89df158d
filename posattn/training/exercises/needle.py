"""`needle`: key-value pairs scattered in filler, and at the end some of the keys, asking for values.

Symbol 0 fills; of the others the first half are keys, the rest values. Each row has `pairs`
different keys, each followed by its value, at random places; the last `questions` places repeat
`questions` of these keys, and the answer there is the key's value.
"""

from typing import Literal, final

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, model_validator
from typing_extensions import override

from posattn.training.exercises.base import NOTHING, Exercise, ExerciseConfig, Posed, Symbols
from posattn.training.objectives.base import Ids, objectives
from posattn.training.text.draws import Purpose


class NeedleConfig(ExerciseConfig):
    """Options of `needle`."""

    name: Literal["needle"] = "needle"
    pairs: int = Field(default=4, ge=1)
    """Keys with values in a row."""
    questions: int = Field(default=4, ge=1)
    """Keys asked about at the end, at most as many as there are pairs."""

    @model_validator(mode="after")
    def _has_answers(self) -> "NeedleConfig":
        if self.questions > self.pairs:
            raise ValueError(
                f"questions {self.questions} asks for more keys than the {self.pairs} pairs have; "
                "lower it, or raise pairs"
            )
        return self

    @override
    def least_symbols(self, length: int) -> int:
        return max(5, 2 * self.pairs + 1)

    @override
    def targets_in(self, length: int) -> float:
        return float(self.questions)

    @override
    def statement(self) -> str:
        return f"{self.pairs} key-value pairs in filler, {self.questions} keys at the end ask"


@final
@objectives.register("needle")
class Needle(Exercise):
    """Associative recall at a distance."""

    Config = NeedleConfig
    config: NeedleConfig

    @override
    def pose(self, symbols: Symbols) -> Posed:
        pairs, questions = self.config.pairs, self.config.questions
        rows = np.arange(len(symbols.values))[:, None]
        keys, values = self._keys(symbols), self._values(symbols)
        at = self._places(symbols)
        seen = np.zeros_like(symbols.values)
        answers = np.full_like(seen, NOTHING)
        seen[rows, at], seen[rows, at + 1] = keys, values
        asked = _shuffled(symbols, Purpose.SIZES, pairs)[:, :questions]
        seen[:, symbols.length - questions :] = keys[rows, asked]
        answers[:, symbols.length - questions :] = values[rows, asked]
        return Posed(seen, answers)

    def _keys(self, symbols: Symbols) -> Ids:
        """Return different keys: the first places of a shuffled list of all keys."""
        number = (self.num_symbols - 1) // 2
        return 1 + _shuffled(symbols, Purpose.CONTENT, number)[:, : self.config.pairs]

    def _values(self, symbols: Symbols) -> Ids:
        number = (self.num_symbols - 1) // 2
        of_values = self.num_symbols - 1 - number
        return 1 + number + symbols.values[:, : self.config.pairs] % of_values

    def _places(self, symbols: Symbols) -> Ids:
        """Return where the keys stand: in slots of two places before the questions."""
        slots = (symbols.length - self.config.questions) // 2
        return 2 * _shuffled(symbols, Purpose.PLACES, slots)[:, : self.config.pairs]


def _shuffled(symbols: Symbols, purpose: Purpose, count: int) -> NDArray[np.int64]:
    """Return the numbers below `count` in a random order for each row."""
    return np.argsort(symbols.by_row(purpose, count), axis=1, kind="stable")
