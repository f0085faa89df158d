"""Tokens in the cells of a grid: a pair is related by its offsets along rows and along columns."""

from typing import ClassVar, Literal, final

import torch
from jaxtyping import Bool, Int, Num
from pydantic import NonNegativeInt, PositiveInt, model_validator
from torch import Tensor
from typing_extensions import override

from posattn.errors import IncompatibleParts
from posattn.positions import (
    Apart,
    Distances,
    IntegerFunction,
    Joint,
    Relation,
    counted_positions,
    document_positions,
)
from posattn.relations.base import Places, RelationConfig, Values
from posattn.relations.geometry import Geometry

OUTSIDE = 3  # kinds of pairs with a token in no cell: the query, the key, both


@final
class GridRelation(RelationConfig):
    """Offsets on a grid of cells, counted row by row.

    Positions 0 .. outside - 1 are tokens in front of the grid, such as [CLS], which are in no cell;
    then come the cells. Pairs with such a token have three rows of their own in tables (BEiT's
    treatment): from outside, to outside, between two outside. `factorised` offsets have a row for
    each row offset and one for each column offset, whose terms are added; `joint` ones a row for each
    of both together (Swin, BEiT). `first` is the axis that tables and halves of channels start with.
    """

    num_axes: ClassVar[int] = 2

    name: Literal["grid"] = "grid"
    rows: PositiveInt
    columns: PositiveInt
    outside: NonNegativeInt = 0
    offsets: Literal["factorised", "joint"] = "factorised"
    first: Literal["row", "column"] = "row"

    @model_validator(mode="after")
    def _has_two_axes(self) -> "GridRelation":
        if self.rows * self.columns < 2:
            raise ValueError("a grid of 1 x 1 has no offsets; raise rows or columns, or use line")
        return self

    @override
    def describe(self) -> str:
        front = f", {self.outside} in front of them" if self.outside else ""
        return (
            f"offsets on a grid of {self.rows} rows and {self.columns} columns{front}, {self.offsets}, "
            f"{self.first}s first"
        )

    @override
    def max_length(self) -> int:
        return self.outside + self.rows * self.columns

    @override
    def table_rows(self, per_axis: int) -> int:
        cells = per_axis**2 if self.offsets == "joint" else 2 * per_axis
        return cells + self._outside_rows()

    @override
    def count_values(self, distances: int) -> int:
        return (2 * self.rows - 1) * (2 * self.columns - 1)

    @override
    def buckets(
        self, geometry: Geometry, per_axis: int, row: IntegerFunction
    ) -> tuple[Relation, ...]:
        first, second = (axis.mapped(row) for axis in self._offsets(geometry))
        beyond = self.table_rows(per_axis) - self._outside_rows()
        if self.offsets == "joint":
            return (self._apart(geometry, Joint(first, second, per_axis), beyond),)
        second = second.mapped(lambda value: value + per_axis)
        if not self.outside:
            return first, second
        # a pair with a token in no cell has one row, not one for each axis: the second is the blank
        blank = self.table_rows(per_axis)
        one, other = self._insides(geometry)
        return (
            Apart(first, one, other, (beyond, beyond + 1, beyond + 2)),
            Apart(second, one, other, (blank, blank, blank)),
        )

    @override
    def largest(self, geometry: Geometry) -> None:
        return None

    @override
    def reached(self, table: Tensor, low: int, high: int) -> Tensor:
        return table

    @override
    def reached_rows(self, per_axis: int, distances: int) -> int:
        return self.table_rows(per_axis)

    @override
    def blank_rows(self) -> int:
        return int(self.outside > 0 and self.offsets == "factorised")

    @override
    def values(self, geometry: Geometry) -> Values:
        device = geometry.query_positions.device
        sizes = self._sizes()
        ranges = [torch.arange(1 - size, size, device=device) for size in sizes]
        every = torch.cartesian_prod(*ranges)
        first, second = (
            axis.mapped(lambda value, size=size: value + size - 1)  # type: ignore[misc]
            for axis, size in zip(self._offsets(geometry), sizes, strict=True)
        )
        joint = Joint(first, second, 2 * sizes[1] - 1)
        if not self.outside:
            return Values(every, joint)
        return Values(every, self._apart(geometry, joint, len(every)), blanks=OUTSIDE)

    @override
    def places(self, positions: Num[Tensor, "#batch length"]) -> Places:
        cell = positions.long() - self.outside
        inside = cell >= 0
        held = cell.clamp(min=0)
        axes = [held // self.columns, held % self.columns]
        if self.first == "column":
            axes.reverse()
        return Places(torch.stack(axes, dim=-1), inside)

    @override
    def positions(
        self,
        coordinates: Tensor,
        shape: tuple[int, int],
        visible: Bool[Tensor, "batch length"] | None = None,
        documents: Int[Tensor, "batch length"] | None = None,
    ) -> Int[Tensor, "#batch length"]:
        batch, length = shape
        if tuple(coordinates.shape) not in ((batch, length, 2), (1, length, 2)):
            raise IncompatibleParts(
                f"coordinates have shape {list(coordinates.shape)}, but the tokens need "
                f"[{batch}, {length}, 2] or [1, {length}, 2]: row, then column"
            )
        if coordinates.is_floating_point() or coordinates.dtype == torch.bool:
            raise IncompatibleParts(f"coordinates have dtype {coordinates.dtype}; give integers")
        row, column = coordinates.long().unbind(-1)
        inside = (row >= 0) & (column >= 0)
        given = visible if documents is None else documents
        if given is not None:
            row, column, inside = (part.expand_as(given) for part in (row, column, inside))
        seen = torch.ones_like(inside) if visible is None else visible
        self._check_cells(row.where(inside, 0), column.where(inside, 0))
        in_front = seen & ~inside
        if documents is None:
            front = counted_positions(in_front)
        else:
            front = document_positions(documents, in_front)
        if front.numel() and int(front.max()) >= self.outside:
            raise IncompatibleParts(
                f"{int(front.max()) + 1} tokens have negative coordinates, so they are in no cell, but "
                f"encoder.relation has outside: {self.outside}; give them cells, or raise outside"
            )
        position = torch.where(inside, self.outside + row * self.columns + column, front)
        return position.masked_fill(~seen, -1)

    def _check_cells(self, row: Tensor, column: Tensor) -> None:
        if not row.numel():
            return
        last = int(row.max()), int(column.max())
        if last[0] >= self.rows or last[1] >= self.columns:
            raise IncompatibleParts(
                f"coordinates reach row {last[0]} and column {last[1]}, but the grid has {self.rows} "
                f"rows and {self.columns} columns, counted from 0; enlarge encoder.relation"
            )

    def _sizes(self) -> tuple[int, int]:
        sizes = (self.rows, self.columns)
        return sizes if self.first == "row" else sizes[::-1]

    def _outside_rows(self) -> int:
        return OUTSIDE if self.outside else 0

    def _offsets(self, geometry: Geometry) -> tuple[Distances, Distances]:
        query = self.places(geometry.query_positions).coordinates.unbind(-1)
        key = self.places(geometry.key_positions).coordinates.unbind(-1)
        first, second = (size - 1 for size in self._sizes())
        return Distances(query[0], key[0], first), Distances(query[1], key[1], second)

    def _insides(
        self, geometry: Geometry
    ) -> tuple[Bool[Tensor, "#batch query"], Bool[Tensor, "#batch key"]]:
        return (
            geometry.query_positions >= self.outside,
            geometry.key_positions >= self.outside,
        )

    def _apart(self, geometry: Geometry, inside: Relation, beyond: int) -> Relation:
        if not self.outside:
            return inside
        return Apart(inside, *self._insides(geometry), (beyond, beyond + 1, beyond + 2))
