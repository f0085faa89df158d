"""A call's biases as the operator takes them: by token and by distance, and the rest by pair."""

from dataclasses import dataclass
from typing import final

from torch import Tensor

from posattn.bias import AttentionBias, BucketScores, KeyScores, QueryScores
from posattn.positions import Distances, Relation


@final
@dataclass
class BiasParts:
    """Scores with the bucket of each distance, for one set of positions; the rest as a tensor of pairs.

    The operator takes one lookup by query and one by key; what depends on distance alone is summed
    into one number per head and distance.
    """

    distances: Distances | None = None
    query: tuple[Tensor, Tensor] | None = None
    key: tuple[Tensor, Tensor] | None = None
    by_distance: Tensor | None = None
    dense: Tensor | None = None

    def add(self, part: AttentionBias) -> None:
        """Take in one simple bias."""
        match part:
            case QueryScores() if (
                self.query is None and (row := self._row(part.bucket)) is not None
            ):
                self.query = (part.scores, row)
            case KeyScores() if self.key is None and (row := self._row(part.bucket)) is not None:
                self.key = (part.scores, row)
            case BucketScores() if self._row(part.bucket) is not None:
                self.by_distance = _sum(self.by_distance, part.by_distance())
            case _:
                self.dense = _sum(self.dense, part.materialize())

    def _row(self, relation: Relation) -> Tensor | None:
        """Return the bucket of each distance if the relation has the same positions as the others."""
        stated = relation.of_distance()
        if stated is None:
            return None
        if self.distances is None:
            self.distances = stated.distances
        return stated.row if stated.distances is self.distances else None


def _sum(sum_so_far: Tensor | None, more: Tensor | None) -> Tensor | None:
    return more if sum_so_far is None or more is None else sum_so_far + more
