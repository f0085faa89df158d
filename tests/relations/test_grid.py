"""A grid: where positions are, which offsets pairs have, and what it refuses."""

from typing import Any

import pytest
import torch
from pydantic import ValidationError

from posattn.errors import IncompatibleParts
from posattn.relations import Geometry, GridRelation

GRID = GridRelation(rows=2, columns=3, outside=1)
EVERY = torch.arange(7)[None]


def test_positions_count_cells_row_by_row_after_the_tokens_in_front() -> None:
    found = GRID.places(torch.tensor([[-1, 0, 1, 3, 4, 6]]))
    assert found.coordinates[0, 2:].tolist() == [[0, 0], [0, 2], [1, 0], [1, 2]]
    assert found.inside is not None
    assert found.inside[0].tolist() == [False, False, True, True, True, True]


def test_columns_may_come_first() -> None:
    swapped = GridRelation(rows=2, columns=3, outside=1, first="column")
    assert torch.equal(swapped.places(EVERY).coordinates, GRID.places(EVERY).coordinates.flip(-1))
    assert swapped.describe().endswith("columns first")


@pytest.mark.parametrize("visible", [None, torch.ones(1, 7, dtype=torch.bool)])
def test_coordinates_give_the_positions_they_come_from(visible: torch.Tensor | None) -> None:
    places = GRID.places(EVERY)
    assert places.inside is not None
    coordinates = places.coordinates.where(places.inside[..., None], -1)
    order = torch.tensor([3, 0, 6, 1, 2, 5, 4])
    found = GRID.positions(coordinates[:, order], (1, 7), visible)
    assert found.tolist() == [order.tolist()]


def test_padding_is_at_position_minus_one_whatever_its_coordinates() -> None:
    coordinates = torch.tensor([[[-1, -1], [1, 2], [-1, -1], [9, 9]]]).clamp(max=1)
    visible = torch.tensor([[True, True, False, False]])
    assert GRID.positions(coordinates, (1, 4), visible).tolist() == [[0, 5, -1, -1]]


def test_tokens_in_front_are_counted_anew_in_each_document() -> None:
    coordinates = torch.tensor([[[-1, -1], [1, 2], [-1, -1], [0, 0]]])
    documents = torch.tensor([[0, 0, 1, 1], [4, 4, 2, 2]])
    found = GRID.positions(coordinates, (2, 4), None, documents)
    assert found.tolist() == [[0, 6, 0, 1]] * 2


@pytest.mark.parametrize(
    ("coordinates", "message"),
    [
        (torch.zeros(1, 3, dtype=torch.long), r"shape \[1, 3\].*\[1, 3, 2\].*row, then column"),
        (torch.zeros(1, 3, 2), "dtype torch.float32; give integers"),
        (
            torch.tensor([[[0, 0], [2, 0], [0, 1]]]),
            "reach row 2 and column 1, but the grid has 2 rows",
        ),
        (torch.tensor([[[-1, 0], [0, -1], [0, 1]]]), "2 tokens have negative .* outside: 1"),
    ],
)
def test_coordinates_that_do_not_fit_are_refused(coordinates: torch.Tensor, message: str) -> None:
    with pytest.raises(IncompatibleParts, match=message):
        GRID.positions(coordinates, (1, 3))


@pytest.mark.parametrize("offsets", ["factorised", "joint"])
@pytest.mark.parametrize("outside", [0, 2])
def test_every_row_of_a_table_is_some_pairs_and_no_pair_is_beyond_it(
    offsets: Any, outside: int
) -> None:
    grid = GridRelation(rows=3, columns=3, outside=outside, offsets=offsets)
    every = torch.arange(9 + outside)[None]
    buckets = grid.buckets(Geometry(every, every), 5, lambda offset: offset + 2)
    rows = torch.cat([bucket.pairs.flatten() for bucket in buckets]).unique()
    table = grid.with_blank(torch.ones(grid.table_rows(5), 1))
    blank = {len(table) - 1} if len(table) > grid.table_rows(5) else set()
    assert set(rows.tolist()) == set(range(grid.table_rows(5))) | blank
    assert int(table.sum()) == grid.table_rows(5)


def test_values_are_all_offsets_and_blanks_for_tokens_in_front() -> None:
    found = GRID.values(Geometry(EVERY, EVERY))
    assert len(found.values) == GRID.count_values(0) == 15
    assert found.blanks == 3
    which = found.which.pairs[0]
    places = GRID.places(EVERY).coordinates[0]
    expected = places[1:, None] - places[None, 1:]
    assert torch.equal(found.values[which[1:, 1:]], expected)
    assert which[0].tolist() == [17] + [15] * 6
    assert which[1:, 0].tolist() == [16] * 6


def test_a_grid_of_one_cell_is_refused() -> None:
    with pytest.raises(ValidationError, match="1 x 1 has no offsets"):
        GridRelation(rows=1, columns=1)


def test_a_grid_takes_no_matrix_of_pairs() -> None:
    with pytest.raises(IncompatibleParts, match="'grid', which follows from positions"):
        GRID.pairs(torch.zeros(1, 7, 7, dtype=torch.long), (1, 7))
