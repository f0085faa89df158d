"""A call's biases as the operator takes them: by token and by distance, and the rest by pair."""

from dataclasses import dataclass
from typing import final

from torch import Tensor

from posattn.bias import (
    AttentionBias,
    BucketScores,
    KeyProducts,
    KeyScores,
    QueryProducts,
    QueryScores,
)
from posattn.positions import Distances, Relation


@final
@dataclass(frozen=True)
class Lookup:
    """The bucket of each distance, and scores by bucket: as they are, or as rows and a table."""

    buckets: Tensor
    scores: Tensor | None = None
    rows: Tensor | None = None
    table: Tensor | None = None

    def tensors(self, batch: int, heads: int) -> tuple[Tensor | None, ...]:
        """Return scores, rows, table and buckets for all heads."""

        def all_heads(tensor: Tensor | None) -> Tensor | None:
            return None if tensor is None else tensor.expand(batch, heads, -1, -1)

        table = None if self.table is None else self.table.expand(heads, -1, -1)
        return all_heads(self.scores), all_heads(self.rows), table, self.buckets


NO_LOOKUP: tuple[Tensor | None, ...] = (None, None, None, None)


@final
@dataclass
class BiasParts:
    """Scores with the bucket of each distance, for one set of positions; the rest as a tensor of pairs.

    The operator takes one lookup by query and one by key; what depends on distance alone is summed
    into one number per head and distance.
    """

    distances: Distances | None = None
    query: Lookup | None = None
    key: Lookup | None = None
    by_distance: Tensor | None = None
    dense: Tensor | None = None

    def add(self, part: AttentionBias) -> None:
        """Take in one simple bias."""
        match part:
            case QueryScores() if (
                self.query is None and (at := self._buckets(part.bucket)) is not None
            ):
                self.query = Lookup(at, scores=part.scores)
            case QueryProducts() if (
                self.query is None and (at := self._buckets(part.bucket)) is not None
            ):
                self.query = Lookup(at, rows=part.query, table=part.table)
            case KeyScores() if self.key is None and (at := self._buckets(part.bucket)) is not None:
                self.key = Lookup(at, scores=part.scores)
            case KeyProducts() if (
                self.key is None and (at := self._buckets(part.bucket)) is not None
            ):
                self.key = Lookup(at, rows=part.key, table=part.table)
            case BucketScores() if self._buckets(part.bucket) is not None:
                self.by_distance = _sum(self.by_distance, part.by_distance())
            case _:
                self.dense = _sum(self.dense, part.materialize())

    def _buckets(self, relation: Relation) -> Tensor | None:
        """Return the bucket of each distance if the relation has the same positions as the others."""
        stated = relation.of_distance()
        if stated is None:
            return None
        if self.distances is None:
            self.distances = stated.distances
        return stated.row if stated.distances is self.distances else None


def _sum(sum_so_far: Tensor | None, more: Tensor | None) -> Tensor | None:
    return more if sum_so_far is None or more is None else sum_so_far + more
