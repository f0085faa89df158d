"""Relations made of others: two integers in one, and pairs that stand apart."""

from abc import abstractmethod
from dataclasses import dataclass
from typing import final, no_type_check

import torch
from jaxtyping import Bool, Int
from torch import Tensor
from typing_extensions import override

from posattn.lazy import cached_property
from posattn.positions.relations import (
    GivenPairs,
    IntegerFunction,
    PairFunction,
    Relation,
    per_token,
)
from posattn.shapes import Pairs


class Composed(Relation):
    """What all made of others share: functions of them are taken for every pair."""

    @cached_property
    def _pairs(self) -> Pairs:
        return self._compute()

    @abstractmethod
    def _compute(self) -> Pairs:
        """Return the integers of all pairs."""

    @property
    @override
    def pairs(self) -> Pairs:
        return self._pairs

    @property
    @override
    def largest(self) -> int:
        return GivenPairs(self._pairs).largest

    @override
    def mapped(self, function: IntegerFunction) -> GivenPairs:
        return GivenPairs(function(self._pairs))

    @override
    def distinct(self) -> tuple[Int[Tensor, " values"], Relation]:
        return GivenPairs(self._pairs).distinct()


@final
@dataclass(frozen=True)
class Joint(Composed):
    """`first * width + second`, with `second` within 0 .. width - 1."""

    first: Relation
    second: Relation
    width: int

    @override
    def _compute(self) -> Pairs:
        return self.first.pairs * self.width + self.second.pairs

    @override
    def at(self) -> PairFunction:
        first, second, width = self.first.at(), self.second.at(), self.width

        @no_type_check
        def value(b: Tensor, i: Tensor, j: Tensor) -> Tensor:
            return first(b, i, j) * width + second(b, i, j)

        found: PairFunction = value
        return found


@final
@dataclass(frozen=True)
class Apart(Composed):
    """The integer of `inside`, or another where the query, the key, or both are not inside."""

    inside: Relation
    query: Bool[Tensor, "#batch query"]
    key: Bool[Tensor, "#batch key"]
    others: tuple[int, int, int]  # the query is outside, the key is, both are

    @override
    def _compute(self) -> Pairs:
        return self._chosen(self.query[:, :, None], self.key[:, None, :], self.inside.pairs)

    @override
    def at(self) -> PairFunction:
        query, key, inside = per_token(self.query), per_token(self.key), self.inside.at()
        chosen = self._chosen

        @no_type_check
        def value(b: Tensor, i: Tensor, j: Tensor) -> Tensor:
            return chosen(query(b, i), key(b, j), inside(b, i, j))

        found: PairFunction = value
        return found

    @no_type_check
    def _chosen(self, query: Tensor, key: Tensor, inside: Tensor) -> Tensor:
        of_query, of_key, of_both = self.others
        beyond = torch.where(query, of_key, torch.where(key, of_query, of_both))
        return torch.where(query & key, inside, beyond)
