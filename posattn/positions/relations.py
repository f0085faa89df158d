"""Relations: an integer for every pair of a query and a key, as a value.

A mechanism states its buckets as a function of a relation; a backend that works tile by tile reads
them from positions and one row of the table per distance, and no tensor of the size of all pairs exists.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias, final, no_type_check

import torch
from jaxtyping import Int, Num, Shaped
from torch import Tensor
from typing_extensions import override

from posattn.lazy import cached_property
from posattn.positions.distances import distances
from posattn.shapes import Pairs

IntegerFunction: TypeAlias = Callable[[Int[Tensor, "*any"]], Int[Tensor, "*any"]]
PairFunction: TypeAlias = Callable[[Tensor, Tensor, Tensor], Tensor]
"""(batch, query index, key index) -> the integer of the pair, for tensors that broadcast."""


class Relation(ABC):
    """An integer for every pair of a query and a key: a distance, a bucket, an edge of a graph."""

    @property
    @abstractmethod
    def pairs(self) -> Pairs:
        """Return the integers of all pairs, computed once."""

    @property
    @abstractmethod
    def largest(self) -> int:
        """Return the largest absolute value; looks at all pairs only if it has to."""

    @abstractmethod
    def mapped(self, function: IntegerFunction) -> "Relation":
        """Return the relation whose integers are those of this one after an elementwise function."""

    @abstractmethod
    def distinct(self) -> tuple[Int[Tensor, " values"], "Relation"]:
        """Return values among which all pairs' integers are, and which of them each pair has."""

    @abstractmethod
    def at(self) -> PairFunction:
        """Return the same integers one pair at a time."""

    def of_distance(self) -> "OfDistance | None":
        """Return the same as a function of whole distances; None if it is not stated as one."""
        return None

    def as_distances(self) -> "Distances | None":
        """Return whole distances if that is what these integers are, unchanged; else None."""
        return None


@final
@dataclass(frozen=True)
class GivenPairs(Relation):
    """Integers that are known for every pair."""

    given: Pairs

    @property
    @override
    def pairs(self) -> Pairs:
        return self.given

    @cached_property
    def _largest(self) -> int:
        return int(self.given.abs().max()) if self.given.numel() else 0

    @property
    @override
    def largest(self) -> int:
        return self._largest

    @override
    def mapped(self, function: IntegerFunction) -> "GivenPairs":
        return GivenPairs(function(self.given))

    @override
    def distinct(self) -> tuple[Int[Tensor, " values"], Relation]:
        values = self.given.flatten()
        which = torch.arange(values.shape[0], device=values.device)
        return values, GivenPairs(which.view(self.given.shape))

    @override
    def at(self) -> PairFunction:
        return _look_up(self.given)


@final
@dataclass(frozen=True)
class Distances(Relation):
    """Query position minus key position.

    `reach` is the largest distance, in either direction, where it is known without looking at the
    positions; padding has position -1 and is invisible.
    """

    query_positions: Num[Tensor, "#batch query"]
    key_positions: Num[Tensor, "#batch key"]
    reach: int | None = None

    @cached_property
    def _pairs(self) -> Pairs:
        return distances(self.query_positions, self.key_positions)

    @property
    @override
    def pairs(self) -> Pairs:
        return self._pairs

    @cached_property
    def _largest(self) -> int:
        if self.reach is not None:
            return self.reach
        query, key = self.query_positions, self.key_positions
        if not query.numel() or not key.numel():
            return 0
        high, low = query.amax(-1) - key.amin(-1), key.amax(-1) - query.amin(-1)
        return int(torch.maximum(high, low).max())

    @property
    @override
    def largest(self) -> int:
        return self._largest

    @override
    def mapped(self, function: IntegerFunction) -> "OfDistance":
        return OfDistance(self, function(self._values()))

    @override
    def distinct(self) -> tuple[Int[Tensor, " values"], Relation]:
        values = self._values()
        return values, self.mapped(lambda distance: distance + self.largest)

    @override
    def at(self) -> PairFunction:
        query, key = per_token(self.query_positions), per_token(self.key_positions)

        @no_type_check
        def distance(b: Tensor, i: Tensor, j: Tensor) -> Tensor:
            return query(b, i) - key(b, j)

        found: PairFunction = distance
        return found

    @override
    def of_distance(self) -> "OfDistance | None":
        return None if self.as_distances() is None else self.mapped(lambda distance: distance)

    @override
    def as_distances(self) -> "Distances | None":
        placed = (self.query_positions, self.key_positions)
        return None if any(at.is_floating_point() for at in placed) else self

    def _values(self) -> Int[Tensor, " values"]:
        reach, device = self.largest, self.query_positions.device
        return torch.arange(-reach, reach + 1, device=device)


@final
@dataclass(frozen=True)
class OfDistance(Relation):
    """A function of the distance: `row[distance + reach]`, reach being the largest distance."""

    distances: Distances
    row: Int[Tensor, " values"]

    @cached_property
    def _pairs(self) -> Pairs:
        return self.row[self.distances.pairs + self.distances.largest]

    @property
    @override
    def pairs(self) -> Pairs:
        return self._pairs

    @cached_property
    def _largest(self) -> int:
        return int(self.row.abs().max()) if self.row.numel() else 0

    @property
    @override
    def largest(self) -> int:
        return self._largest

    @override
    def mapped(self, function: IntegerFunction) -> "OfDistance":
        return OfDistance(self.distances, function(self.row))

    @override
    def distinct(self) -> tuple[Int[Tensor, " values"], Relation]:
        which = torch.arange(self.row.shape[0], device=self.row.device)
        return self.row, OfDistance(self.distances, which)

    @override
    def at(self) -> PairFunction:
        row, reach, distance = self.row, self.distances.largest, self.distances.at()

        @no_type_check
        def value(b: Tensor, i: Tensor, j: Tensor) -> Tensor:
            return row[distance(b, i, j) + reach]

        found: PairFunction = value
        return found

    @override
    def of_distance(self) -> "OfDistance | None":
        return None if self.distances.as_distances() is None else self


def _look_up(values: Pairs) -> PairFunction:
    batches = values.shape[0]

    @no_type_check
    def value(b: Tensor, i: Tensor, j: Tensor) -> Tensor:
        return values[b if batches > 1 else 0, i, j]

    found: PairFunction = value
    return found


def per_token(
    values: Shaped[Tensor, "#batch length"],
) -> Callable[[Tensor, Tensor], Tensor]:
    """Return (batch, index) -> the value of that token, for tensors that broadcast."""
    batches = values.shape[0]

    @no_type_check
    def value(b: Tensor, i: Tensor) -> Tensor:
        return values[b if batches > 1 else 0, i]

    found: Callable[[Tensor, Tensor], Tensor] = value
    return found
