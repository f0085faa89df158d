"""Probes that fetch a symbol from another place: `offset`, `offset_by_symbol`, `pointed`."""

from collections.abc import Iterator
from typing import Any, Literal, final

from pydantic import Field
from typing_extensions import override

from posattn.comparison.probes.base import BLIND, Prediction, Probe, ProbeConfig, probes
from posattn.comparison.probes.facts import Facts
from posattn.comparison.probes.guessing import most_frequent, one_of_two

MIRRORED = "left and right look alike, so the symbol as far away on the other side is as likely"


def fetches(facts: Facts) -> bool:
    """Return whether a head can pick keys at any one distance, to one side, wherever the query is."""
    reads = facts.reads_query or facts.reads_key
    steady = facts.shift_blind and facts.pairwise and not facts.moves
    return reads and steady and not (facts.mirrored or facts.order_blind or facts.local)


def mirrored_share(length: int, distances: list[int], symbols: int) -> float:
    """Return the best accuracy at these distances to the left if left and right look alike.

    Within one distance of the right end there is no place on the other side, and the answer is clear.
    """
    guessed = one_of_two(symbols)
    right = sum(max(0, length - 2 * k) * guessed + min(k, length - k) for k in distances)
    return right / sum(length - k for k in distances)


class OffsetConfig(ProbeConfig):
    """Options of `offset`."""

    name: Literal["offset"] = "offset"
    offset: int = Field(default=3, ge=1, le=15)


@final
@probes.register("offset")
class OffsetProbe(Probe):
    """Fetch the symbol three places to the left; trained at 32, tried up to 128."""

    Config = OffsetConfig
    config: OffsetConfig
    question = (
        "Can attention find a place at a fixed distance, and still beyond the trained length?"
    )
    multiples = (1, 2, 4)

    @override
    def objective(self) -> dict[str, Any]:
        return {"name": "offset", "offset": self.config.offset}

    @override
    def expect(self, facts: Facts) -> Iterator[Prediction]:
        if facts.order_blind:
            yield self.at_chance(BLIND)
        elif facts.mirrored:
            share = mirrored_share(self.row, [self.config.offset], self.symbols)
            yield self.at_chance(MIRRORED, share)
        if fetches(facts):
            why = "the position term can single out one distance, the same at every place"
            yield self.solves(why)
            if not facts.fresh_rows:
                why += "; every distance of longer rows reads what training reached"
                yield self.solves(why, 4)
        if facts.fresh_input_rows:
            why = "three of four places have a row of the position table that was never trained"
            yield self.fails(why, 4)


class OffsetBySymbolConfig(ProbeConfig):
    """Options of `offset_by_symbol`."""

    name: Literal["offset_by_symbol"] = "offset_by_symbol"
    reaches: int = Field(default=10, ge=2)


@final
@probes.register("offset_by_symbol")
class OffsetBySymbolProbe(Probe):
    """Fetch the symbol at the distance that the asking symbol states: needs c2p."""

    Config = OffsetBySymbolConfig
    config: OffsetBySymbolConfig
    question = "Can what a query says decide how far it looks (content to position)?"
    steps = 400
    num_symbols = 20
    multiples = (1, 4)

    @override
    def objective(self) -> dict[str, Any]:
        return {"name": "offset_by_symbol", "reaches": self.config.reaches}

    @override
    def expect(self, facts: Facts) -> Iterator[Prediction]:
        if facts.order_blind:
            yield self.at_chance(BLIND)
        elif facts.mirrored:
            distances = list(range(1, self.config.reaches + 1))
            yield self.at_chance(MIRRORED, mirrored_share(self.row, distances, self.symbols))
        elif self._is_short_of_heads(facts):
            yield self.fails(
                "no head chooses its distances by the query's symbol, and there are more distances "
                "than heads that could hold one each"
            )
        if fetches(facts) and facts.reads_query:
            why = "the query's symbol can choose the distance of a head by itself"
            yield self.solves(why)
            if not facts.fresh_rows:
                why += "; every distance of longer rows reads what training reached"
                yield self.solves(why, 4)

    def _is_short_of_heads(self, facts: Facts) -> bool:
        reads = facts.reads_query or facts.adds_to_input or facts.adds_values
        fixed = facts.pairwise and not reads
        return fixed and self.config.reaches > facts.heads * facts.layers


class PointedConfig(ProbeConfig):
    """Options of `pointed`."""

    name: Literal["pointed"] = "pointed"
    reach: int = Field(default=8, ge=1)
    payloads: int = Field(default=4, ge=2)


@final
@probes.register("pointed")
class PointedProbe(Probe):
    """Every symbol says where it points, and each place is asked what points at it: needs p2c.

    Two layers go round it: a symbol that has read its own place off the edges can say where it
    points, and be found by content. Set encoder.num_layers to 1.
    """

    Config = PointedConfig
    config: PointedConfig
    question = "Can what a key says decide from how far it is seen (position to content)?"
    steps = 400
    num_symbols = 68
    multiples = (1, 2)

    @override
    def objective(self) -> dict[str, Any]:
        return {
            "name": "pointed",
            "reach": self.config.reach,
            "payloads": self.config.payloads,
        }

    @override
    def chance(self) -> float:
        """Return the share of symbols that point at themselves, and of the others the best guess."""
        itself = 1.0 / (self.config.reach + 1)
        guessed = most_frequent(self.row, self.config.payloads) / self.row
        return itself + (1.0 - itself) * guessed

    @override
    def expect(self, facts: Facts) -> Iterator[Prediction]:
        if facts.order_blind:
            yield self.fails(
                "a place does not know what is near it, and pointers reach near places"
            )
        elif self._is_short_of_heads(facts):
            yield self.fails(
                "a logit is a term of both contents and a term of query and distance, so no head "
                "matches a key's pointer with its distance, and there are more pointers than heads"
            )
        if fetches(facts) and facts.reads_key:
            yield self.solves("the key's symbol can choose the distance from which it is seen")

    def _is_short_of_heads(self, facts: Facts) -> bool:
        fixed = facts.pairwise and not (facts.reads_key or facts.adds_to_input)
        return fixed and facts.layers == 1 and 2 * self.config.reach + 1 > facts.heads
