"""Probes of absolute place: `index` and `reverse`."""

from collections.abc import Iterator
from typing import Any, Literal, final

from pydantic import Field
from typing_extensions import override

from posattn.comparison.probes.base import BLIND, Prediction, Probe, ProbeConfig, probes
from posattn.comparison.probes.facts import Facts


class IndexConfig(ProbeConfig):
    """Options of `index`."""

    name: Literal["index"] = "index"
    cell: int = Field(default=4, ge=1)


@final
@probes.register("index")
class IndexProbe(Probe):
    """Say in which cell of the row each symbol is; relative mechanisms must read it off the edges."""

    Config = IndexConfig
    config: IndexConfig
    question = "Does each place know where in the row it is, be it from the edges?"
    solved_from = 0.9

    @override
    def objective(self) -> dict[str, Any]:
        return {"name": "index", "cell": self.config.cell}

    @override
    def chance(self) -> float:
        return min(1.0, self.config.cell / self.row)

    @override
    def expect(self, facts: Facts) -> Iterator[Prediction]:
        if facts.order_blind:
            yield self.at_chance("equal symbols get equal answers wherever they are")
        elif facts.mirrored:
            yield self.at_chance(
                "a place looks like the one as far from the other edge, which has another answer",
                self._mirrored_share(),
            )
        elif facts.adds_to_input and not facts.moves:
            yield self.solves("absolute position is in the state of each place")

    def _mirrored_share(self) -> float:
        """Return the best accuracy if places i and L - 1 - i look alike."""
        cells = [place // self.config.cell for place in range(self.row)]
        alike = sum(one == other for one, other in zip(cells, reversed(cells), strict=True))
        return 0.5 + 0.5 * alike / self.row


class ReverseConfig(ProbeConfig):
    """Options of `reverse`."""

    name: Literal["reverse"] = "reverse"


@final
@probes.register("reverse")
class ReverseProbe(Probe):
    """Fetch the symbol at the mirrored place: another distance from every place."""

    Config = ReverseConfig
    question = "Can a distance be chosen by absolute position?"
    steps = 500
    length = 24
    learning_rate = 5e-3
    solved_from = 0.9

    @override
    def objective(self) -> dict[str, Any]:
        return {"name": "reverse"}

    @override
    def expect(self, facts: Facts) -> Iterator[Prediction]:
        if facts.order_blind:
            yield self.at_chance(BLIND)
        elif facts.injects and facts.reads_query and not facts.moves:
            yield self.solves(
                "the last query holds its absolute position, and its position term can choose the "
                "distance by that"
            )
        elif facts.adds_to_input and not (facts.injects or facts.moves):
            yield self.solves(
                "queries and keys hold their absolute positions, which can be matched"
            )
