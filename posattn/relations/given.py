"""Relations that the user gives as an integer for every pair of tokens."""

from abc import abstractmethod
from typing import ClassVar, Literal, final

import torch
from pydantic import PositiveInt
from torch import Tensor
from typing_extensions import override

from posattn.errors import IncompatibleParts
from posattn.positions import GivenPairs, IntegerFunction, Relation
from posattn.relations.base import RelationConfig
from posattn.relations.geometry import Geometry


class GivenRelation(RelationConfig):
    """What both kinds share: the integers are an input of the forward, and are checked."""

    is_given: ClassVar[bool] = True

    @override
    def pairs(self, relation: Tensor | None, shape: tuple[int, int]) -> GivenPairs:
        batch, length = shape
        if relation is None:
            raise IncompatibleParts(
                f"the relation of this encoder is '{self.name}', so each forward needs relation=: an "
                f"integer for every pair of tokens, of shape [{batch}, {length}, {length}] or "
                f"[1, {length}, {length}]"
            )
        if relation.dtype not in (torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8):
            raise IncompatibleParts(f"relation has dtype {relation.dtype}; give integers")
        if tuple(relation.shape) not in ((batch, length, length), (1, length, length)):
            raise IncompatibleParts(
                f"relation has shape {list(relation.shape)}, but the tokens need "
                f"[{batch}, {length}, {length}] or [1, {length}, {length}]: query, then key"
            )
        whole = relation.long()
        if whole.numel():
            self._check_range(int(whole.min()), int(whole.max()))
        return GivenPairs(whole)

    @abstractmethod
    def _check_range(self, low: int, high: int) -> None:
        """Raise if an integer is not allowed."""


@final
class DistanceRelation(GivenRelation):
    """Given integers are distances: mechanisms treat them as they treat those on a line.

    A graph's shortest-path distance is one, never negative; with `signed` they may be, and tables
    tell both signs apart as they tell left from right.
    """

    name: Literal["distances"] = "distances"
    signed: bool = False

    @override
    def has_sign(self) -> bool:
        return self.signed

    @override
    def describe(self) -> str:
        return "given distances, " + ("signed" if self.signed else "never negative")

    @override
    def _check_range(self, low: int, high: int) -> None:
        if low < 0 and not self.signed:
            raise IncompatibleParts(
                f"relation holds the distance {low}, but distances are not negative unless "
                "encoder.relation says signed: true; for pairs without a relation use categories, "
                "or a large distance"
            )


@final
class CategoryRelation(GivenRelation):
    """Given integers are kinds of pairs, 0 .. num_values - 1, each with a row of its own in tables.

    -1 says that two tokens are not related: nothing is added for that pair.
    """

    name: Literal["categories"] = "categories"
    num_values: PositiveInt

    @override
    def describe(self) -> str:
        return f"given categories 0 to {self.num_values - 1}, -1 for none"

    @override
    def table_rows(self, per_axis: int) -> int:
        return self.num_values

    @override
    def buckets(
        self, geometry: Geometry, per_axis: int, row: IntegerFunction
    ) -> tuple[Relation, ...]:
        blank = self.num_values
        return (geometry.relation.mapped(lambda value: torch.where(value < 0, blank, value)),)

    @override
    def largest(self, geometry: Geometry) -> None:
        return None

    @override
    def reached(self, table: Tensor, low: int, high: int) -> Tensor:
        return table

    @override
    def reached_rows(self, per_axis: int, distances: int) -> int:
        return self.num_values

    @override
    def blank_rows(self) -> int:
        return 1

    @override
    def _check_range(self, low: int, high: int) -> None:
        if low < -1 or high >= self.num_values:
            wrong = low if low < -1 else high
            raise IncompatibleParts(
                f"relation holds the category {wrong}, but encoder.relation has num_values "
                f"{self.num_values}: categories are 0 to {self.num_values - 1}, and -1 says none"
            )
