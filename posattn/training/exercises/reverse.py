"""`reverse`: y_i = x_(L-1-i), the row backwards."""

from typing import Literal, final

from typing_extensions import override

from posattn.training.exercises.base import Exercise, ExerciseConfig, Posed, Symbols
from posattn.training.objectives.base import objectives


class ReverseConfig(ExerciseConfig):
    """`reverse` has no options."""

    name: Literal["reverse"] = "reverse"

    @override
    def statement(self) -> str:
        return "y_i = x_(L - 1 - i)"


@final
@objectives.register("reverse")
class Reverse(Exercise):
    """Fetch the symbol on the other side, at another distance from every place."""

    Config = ReverseConfig

    @override
    def pose(self, symbols: Symbols) -> Posed:
        return Posed(symbols.values, symbols.values[:, ::-1])
