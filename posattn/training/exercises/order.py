"""`order`: two masks in a row of one symbol; which of them is first?"""

from typing import Literal, final

import numpy as np
from typing_extensions import override

from posattn.training.exercises.base import MASK, NOTHING, Exercise, ExerciseConfig, Posed, Symbols
from posattn.training.objectives.base import objectives
from posattn.training.text.draws import Purpose


class OrderConfig(ExerciseConfig):
    """`order` has no options."""

    name: Literal["order"] = "order"

    @override
    def least_symbols(self, length: int) -> int:
        return 3

    @override
    def targets_in(self, length: int) -> float:
        return 2.0

    @override
    def statement(self) -> str:
        return "two masks among fillers, label first or second"


@final
@objectives.register("order")
class Order(Exercise):
    """Nothing but the order of the two masks decides; symbol 0 fills, 1 and 2 are the labels."""

    Config = OrderConfig

    @override
    def pose(self, symbols: Symbols) -> Posed:
        chosen = np.argsort(symbols.by_place(Purpose.PLACES), axis=1, kind="stable")[:, :2]
        chosen = np.sort(chosen, axis=1)
        seen = np.zeros_like(symbols.values)
        answers = np.full_like(symbols.values, NOTHING)
        np.put_along_axis(seen, chosen, MASK, axis=1)
        np.put_along_axis(answers, chosen, np.broadcast_to([1, 2], chosen.shape), axis=1)
        return Posed(seen, answers)
