"""Probes that repeat or recall: `copy` and `needle`."""

from collections.abc import Iterator
from typing import Any, Literal, final

from pydantic import Field
from typing_extensions import override

from posattn.comparison.probes.base import Prediction, Probe, ProbeConfig, probes
from posattn.comparison.probes.facts import Facts
from posattn.comparison.probes.guessing import most_frequent
from posattn.comparison.probes.retrieval import BLIND


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
    pairs: int = Field(default=4, ge=2)
    questions: int = Field(default=4, ge=1)


@final
@probes.register("needle")
class NeedleProbe(Probe):
    """Keys with values scattered in filler; at the end the keys ask for their values."""

    Config = NeedleConfig
    config: NeedleConfig
    question = "Is a value found by its key, however far away?"
    steps = 600
    num_symbols = 13
    length = 16
    multiples = (1, 2, 4)
    solved_from = 0.9

    @override
    def objective(self) -> dict[str, Any]:
        return {
            "name": "needle",
            "pairs": self.config.pairs,
            "questions": self.config.questions,
        }

    @override
    def chance(self) -> float:
        values = self.symbols - 1 - (self.symbols - 1) // 2
        return most_frequent(self.config.pairs, values) / self.config.pairs

    @override
    def expect(self, facts: Facts) -> Iterator[Prediction]:
        if facts.order_blind:
            yield self.at_chance(f"{BLIND}: which value belongs to which key is not in it")
