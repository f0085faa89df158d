"""Probes that repeat or recall: `copy` and `needle`."""

from collections.abc import Iterator
from typing import Any, Literal, final

from pydantic import Field
from typing_extensions import override

from posattn.comparison.evaluations.recall_distance import RecallDistanceConfig
from posattn.comparison.probes.base import BLIND, Prediction, Probe, ProbeConfig, probes
from posattn.comparison.probes.facts import Facts
from posattn.comparison.probes.guessing import most_frequent


class CopyConfig(ProbeConfig):
    """Options of `copy`."""

    name: Literal["copy"] = "copy"


@final
@probes.register("copy")
class CopyProbe(Probe):
    """Repeat a string of variable length; at 2x every string is longer than any in training."""

    Config = CopyConfig
    question = "Can a string be repeated, and one longer than any in training?"
    steps = 500
    length = 24
    multiples = (1, 2)
    solved_from = 0.9

    @override
    def objective(self) -> dict[str, Any]:
        return {"name": "copy"}

    @override
    def chance(self) -> float:
        sizes = range(self.row // 4, (self.row - 1) // 2 + 1)
        return sum(most_frequent(size, self.symbols) for size in sizes) / sum(sizes)

    @override
    def expect(self, facts: Facts) -> Iterator[Prediction]:
        if facts.order_blind:
            yield self.at_chance("all masks of a row get one answer")
        if facts.fresh_input_rows:
            why = "most masks stand where the position table was never trained"
            yield self.fails(why, 2)


class NeedleConfig(ProbeConfig):
    """Options of `needle`."""

    name: Literal["needle"] = "needle"
    keys: int = Field(default=2, ge=1)


@final
@probes.register("needle")
class NeedleProbe(Probe):
    """Keys in a haystack: at the end of the row each asks for the symbol that followed it."""

    Config = NeedleConfig
    config: NeedleConfig
    question = "Is what stands beside a key found by the key, however far away?"
    steps = 700
    num_symbols = 18
    multiples = (1, 2, 4)
    further = (RecallDistanceConfig(),)
    solved_from = 0.9

    @override
    def objective(self) -> dict[str, Any]:
        return {"name": "needle", "keys": self.config.keys}

    @override
    def chance(self) -> float:
        hay = self.row - 2 * self.config.keys
        return most_frequent(hay, self.symbols - self.config.keys) / hay

    @override
    def expect(self, facts: Facts) -> Iterator[Prediction]:
        if facts.order_blind:
            yield self.at_chance(f"{BLIND}: what stands beside the key is not in it")
