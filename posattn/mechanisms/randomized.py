"""Randomized positions, for any mechanism (Ruoss et al. 2023, arXiv:2305.16843).

    training:    a text of n tokens is placed at the sorted values of a random n-subset of
                 0 .. max_position - 1 instead of 0 .. n - 1
    evaluation:  plain   0 .. n - 1
                 spread  token p at floor((2 p + 1) max_position / (2 n)), which covers the whole range

so that every position up to max_position is trained on short texts, and longer ones are not new. The
wrapped mechanism knows nothing of it: input, rotation, bias and values all read the drawn positions.
What may be seen (causal, windows) is judged by plain positions; order is the same.

One permutation is drawn per forward and a text of n tokens takes its first n values, sorted: texts of one
length share their positions, as in the authors' code, and no text's positions depend on the others in
the batch or on padding. The permutation follows from torch's global generator, which training seeds from
(seed, step, micro-batch), and from no data. It takes one number from that generator, so dropout noise
on the CPU is another than in the bare mechanism's arm.

Against the authors' code (google-deepmind/randomized_positional_encodings): it draws in evaluation too;
it draws anew for queries and keys of each layer where the mechanism acts in attention, one draw serves a
whole forward here; and for relative encodings and ALiBi it draws distances instead of positions. max_position
is 2048 there.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Literal, final

import torch
from jaxtyping import Int, Num
from pydantic import Field, PositiveInt
from torch import Tensor
from typing_extensions import override

from posattn.errors import IncompatibleParts
from posattn.mechanisms.base import (
    LINE,
    EncoderDims,
    InnerMechanismConfig,
    MechanismConfig,
    Places,
    Traits,
    mechanisms,
)
from posattn.mechanisms.chance import random_subsets
from posattn.mechanisms.wrapper import Wrapper, WrapperConfig


class RandomizedConfig(WrapperConfig):
    """Options of randomized positions."""

    name: Literal["randomized"] = "randomized"
    mechanism: InnerMechanismConfig = Field(default={"name": "rope"}, validate_default=True)
    max_position: PositiveInt = 2048  # positions are drawn below it; no text may be longer
    evaluation: Literal["plain", "spread"] = "plain"

    @override
    def traits(self) -> Traits:
        inner: Traits = self.mechanism.traits()
        is_invariant = inner.translation_invariant and self.evaluation == "plain"
        return replace(inner, places=True, translation_invariant=is_invariant, relations=LINE)

    @override
    def fresh_rows_beyond(self, trained: int) -> bool:
        """Return False: positions in training reach as far as they ever may."""
        return False

    @override
    def max_length(self) -> int:
        return self.max_position

    @override
    def problems(self, dims: EncoderDims) -> list[str]:
        inner: MechanismConfig = self.mechanism
        problems, limit = super().problems(dims), inner.max_length()
        if not inner.traits().knows_position:
            problems.append(f"randomized positions change nothing in '{inner.name}'")
        if not inner.traits().pairwise:
            problems.append(f"'{inner.name}' counts keys in order; where they are changes nothing")
        if inner.traits().places:
            problems.append(f"'{inner.name}' chooses positions itself; randomize another mechanism")
        if limit is not None and limit < self.max_position:
            problems.append(
                f"randomized max_position {self.max_position} is more than the {limit} positions of "
                f"'{inner.name}'; lower max_position or enlarge its table"
            )
        if inner.memory():
            problems.append("randomized positions have no memory; set memory_length to 0")
        return problems

    @override
    def card(self, dims: EncoderDims) -> Mapping[str, str]:
        return {
            **super().card(dims),
            "positions in training": f"sorted random subset of 0 to {self.max_position - 1}, one draw "
            "per forward",
            "positions in evaluation": "counted from 0"
            if self.evaluation == "plain"
            else f"spread evenly over 0 to {self.max_position - 1}",
        }


@final
@mechanisms.register("randomized")
class Randomized(Wrapper[RandomizedConfig]):
    """Another mechanism, which in training sees the tokens at random places in order."""

    Config = RandomizedConfig

    @override
    def place(self, places: Places) -> Num[Tensor, "#batch length"]:
        if places.training:
            return self._drawn(places)
        if self.config.evaluation == "plain":
            return places.positions
        positions, lengths = places.positions, places.lengths
        self._check(lengths)
        spread = (2 * positions + 1) * self.config.max_position // (2 * lengths.clamp(min=1))
        return spread.masked_fill(positions < 0, -1)

    def _drawn(self, places: Places) -> Int[Tensor, "#batch length"]:
        positions, limit = places.positions, self.config.max_position
        lengths = places.lengths.expand_as(positions)
        self._check(lengths)
        return random_subsets(places.seed_tensor, positions, lengths, limit)

    def _check(self, lengths: Int[Tensor, "#batch #length"]) -> None:
        if torch.compiler.is_compiling():
            return  # no value is looked at; a position past the end is an error of the look-up
        longest = int(lengths.max()) if lengths.numel() else 0
        if longest > self.config.max_position:
            raise IncompatibleParts(
                f"a text reaches position {longest - 1}, but randomized positions are below "
                f"{self.config.max_position}; shorten the input or raise max_position"
            )
