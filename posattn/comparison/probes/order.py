"""Probes of order and absolute place among alike neighbours: `order`, `twin_masks` and hidden edges."""

from collections.abc import Iterator
from typing import Any, Literal, final

from pydantic import Field
from typing_extensions import override

from posattn.comparison.probes.base import Prediction, Probe, ProbeConfig, probes
from posattn.comparison.probes.facts import Facts

SAME = "the two places look alike in every respect that the encoder can see"


class OrderConfig(ProbeConfig):
    """Options of `order`."""

    name: Literal["order"] = "order"


@final
@probes.register("order")
class OrderProbe(Probe):
    """Two masks in a row of one symbol: which of them is first?"""

    Config = OrderConfig
    question = "Can left be told from right?"
    multiples = (1, 2, 4)

    @override
    def objective(self) -> dict[str, Any]:
        return {"name": "order"}

    @override
    def chance(self) -> float:
        return 0.5

    @override
    def expect(self, facts: Facts) -> Iterator[Prediction]:
        if facts.order_blind:
            yield self.at_chance(f"{SAME}: both get one answer")
        elif facts.mirrored:
            yield self.at_chance(
                "reversing the row exchanges the masks and only mirrors the outputs, so one of the two "
                "rows is answered wrongly"
            )
        elif facts.shift_blind and facts.pairwise and not (facts.local or facts.moves):
            yield self.solves(
                "one head that looks to the left meets the other mask from the second"
            )


class _TwinsConfig(ProbeConfig):
    """What both kinds of twins can be asked for."""

    period: int = Field(default=8, ge=2)
    classes: int = Field(default=4, ge=2)


class TwinMasksConfig(_TwinsConfig):
    """Options of `twin_masks`."""

    name: Literal["twin_masks"] = "twin_masks"


class TwinMasksHiddenConfig(_TwinsConfig):
    """Options of `twin_masks_hidden`."""

    name: Literal["twin_masks_hidden"] = "twin_masks_hidden"


class _Twins(Probe):
    """Periodic text with two masks whose neighbours are the same: which period is each in?"""

    config: _TwinsConfig
    edges: str

    @override
    def objective(self) -> dict[str, Any]:
        return {
            "name": "twin_masks",
            "period": self.config.period,
            "classes": self.config.classes,
            "edges": self.edges,
        }

    @override
    def chance(self) -> float:
        return 1.0 / self.config.classes


@final
@probes.register("twin_masks")
class TwinMasksProbe(_Twins):
    """Two masks with the same neighbours, while the edges of the row are in sight."""

    Config = TwinMasksConfig
    question = "Can places with the same neighbours be told apart while the edges are in sight?"
    edges = "visible"

    @override
    def expect(self, facts: Facts) -> Iterator[Prediction]:
        whole = self.row == self.config.period * self.config.classes
        if facts.order_blind:
            yield self.at_chance(f"{SAME}: both get one answer, the same in every row")
        elif facts.mirrored and whole:
            yield self.at_chance(
                "a period looks like the one as far from the other edge, so at most one of two "
                "answers is right",
                2.0 / self.config.classes if self.config.classes % 2 == 0 else None,
            )
        elif facts.adds_to_input and not facts.moves:
            yield self.solves("absolute position is in the state of the mask itself")


@final
@probes.register("twin_masks_hidden")
class TwinMasksHiddenProbe(_Twins):
    """Two masks with the same neighbours, in a row cut at random out of a text; positions are given."""

    Config = TwinMasksHiddenConfig
    question = "Does a prediction know absolute position when the edges tell nothing?"
    edges = "hidden"

    @override
    def expect(self, facts: Facts) -> Iterator[Prediction]:
        if facts.order_blind or facts.shift_blind:
            yield self.at_chance(
                "shifting all positions changes nothing, and the cut is uniform over all answers"
            )
        elif facts.adds_to_input and not facts.moves:
            yield self.solves("absolute position, as given, is in the state of the mask itself")
