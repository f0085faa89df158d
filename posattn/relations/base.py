"""`RelationConfig`: what relates two tokens of an encoder, as one section of a recipe.

A relation decides how mechanisms look up their tables (`table_rows`, `buckets`), where absolute mechanisms
see the tokens (`coordinates`), and what a forward may be given beside the tokens.
"""

from abc import abstractmethod
from typing import ClassVar, NamedTuple

from jaxtyping import Bool, Float, Int, Num
from torch import Tensor
from torch.nn import functional

from posattn.config import NamedConfig
from posattn.errors import IncompatibleParts
from posattn.positions import GivenPairs, IntegerFunction, Relation
from posattn.relations.geometry import Geometry


class Places(NamedTuple):
    """Where tokens are along each axis, and which of them are anywhere at all."""

    coordinates: Num[Tensor, "#batch length axes"]
    inside: Bool[Tensor, "#batch length"] | None  # None: all are

    def kept(
        self, states: Float[Tensor, "#batch length width"]
    ) -> Float[Tensor, "#batch length width"]:
        """Return the states of tokens that are somewhere, and zeros for the others."""
        return states if self.inside is None else states.where(self.inside[..., None], 0.0)


class Values(NamedTuple):
    """Every value that a pair may have, and which of them each pair has; `blanks` more have none."""

    values: Num[Tensor, "values axes"]
    which: Relation
    blanks: int = 0


class RelationConfig(NamedConfig):
    """Options of one relation. What is neutral here is what a line does."""

    num_axes: ClassVar[int] = 1
    is_given: ClassVar[bool] = False  # each forward must be given an integer for every pair

    def has_sign(self) -> bool:
        """Return whether a pair may have a negative distance."""
        return True

    @abstractmethod
    def describe(self) -> str:
        """Return the words of the architecture card."""

    def max_length(self) -> int | None:
        """Return the longest sequence there is room for, or None if there is no limit."""
        return None

    def table_rows(self, per_axis: int) -> int:
        """Return the rows of a table, for a mechanism that has `per_axis` rows for distances."""
        return per_axis

    def count_values(self, distances: int) -> int:
        """Return how many values `values` has, where so many distances on a line may occur."""
        return distances

    def buckets(
        self, geometry: Geometry, per_axis: int, row: IntegerFunction
    ) -> tuple[Relation, ...]:
        """Return the row of each pair in such a table, or several rows whose terms are added.

        `row` turns a distance into one of 0 .. per_axis - 1.
        """
        return (geometry.relation.mapped(row),)

    def largest(self, geometry: Geometry) -> int | None:
        """Return the largest distance of a pair, or None where rows do not follow distances."""
        return geometry.relation.largest

    def reached(self, table: Tensor, low: int, high: int) -> Tensor:
        """Return the rows from low to high, or the whole table where rows do not follow distances."""
        return table[low : high + 1]

    def reached_rows(self, per_axis: int, distances: int) -> int:
        """Return how many rows that is, where so many distances on a line may occur."""
        return min(per_axis, distances)

    def blank_rows(self) -> int:
        """Return the rows of zeros that tables need after their own, for pairs that add nothing."""
        return 0

    def with_blank(
        self, table: Float[Tensor, "*any rows width"]
    ) -> Float[Tensor, "*any more width"]:
        """Return what is looked up in, with the rows of zeros that it needs."""
        return functional.pad(table, (0, 0, 0, self.blank_rows())) if self.blank_rows() else table

    def values(self, geometry: Geometry) -> Values:
        """Return every value that a pair may have, for mechanisms that compute and do not look up."""
        values, which = geometry.relation.distinct()
        return Values(values[:, None], which)

    def places(self, positions: Num[Tensor, "#batch length"]) -> Places:
        """Return where tokens at these positions are along each axis."""
        return Places(positions[..., None], None)

    def positions(
        self,
        coordinates: Tensor,
        shape: tuple[int, int],
        visible: Bool[Tensor, "batch length"] | None = None,
        documents: Int[Tensor, "batch length"] | None = None,
    ) -> Int[Tensor, "#batch length"]:
        """Return the positions of tokens at the given coordinates; `shape` is batch and length."""
        raise IncompatibleParts(
            f"coordinates were given, but the relation of this encoder is '{self.name}', which has "
            "none; leave them out, or use encoder.relation: {name: grid, ..}"
        )

    def pairs(self, relation: Tensor | None, shape: tuple[int, int]) -> GivenPairs | None:
        """Return the given integers of all pairs, checked; `shape` is batch and length."""
        if relation is None:
            return None
        raise IncompatibleParts(
            f"a relation was given, but that of this encoder is '{self.name}', which follows from "
            "positions; leave it out, or use encoder.relation: distances or categories"
        )
