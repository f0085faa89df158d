"""Given relations are checked, and categories below 0 add nothing."""

from typing import Any

import pytest
import torch

from posattn.errors import IncompatibleParts
from posattn.relations import CategoryRelation, DistanceRelation, LineRelation

KINDS = CategoryRelation(num_values=3)
SQUARE = torch.zeros(2, 4, 4, dtype=torch.long)


@pytest.mark.parametrize("relation", [KINDS, DistanceRelation()], ids=lambda one: one.name)
@pytest.mark.parametrize(
    ("given", "message"),
    [
        (None, r"needs relation=: an integer for every pair.*\[2, 4, 4\] or \[1, 4, 4\]"),
        (SQUARE.float(), "dtype torch.float32; give integers"),
        (SQUARE.bool(), "dtype torch.bool; give integers"),
        (SQUARE[:, :3], r"shape \[2, 3, 4\], but the tokens need"),
        (SQUARE[0], r"shape \[4, 4\]"),
        (SQUARE - 2, "holds the (category|distance) -2"),
    ],
    ids=str,
)
def test_a_matrix_that_does_not_fit_is_refused(
    relation: Any, given: torch.Tensor | None, message: str
) -> None:
    with pytest.raises(IncompatibleParts, match=message):
        relation.pairs(given, (2, 4))


def test_a_category_past_the_last_is_refused() -> None:
    with pytest.raises(IncompatibleParts, match=r"category 3, but .* num_values 3"):
        KINDS.pairs(SQUARE + 3, (2, 4))


def test_signed_distances_may_be_negative() -> None:
    found = DistanceRelation(signed=True).pairs(SQUARE - 5, (2, 4))
    assert found.largest == 5


def test_one_matrix_may_serve_the_batch_and_small_integers_are_widened() -> None:
    assert KINDS.pairs(SQUARE[:1].to(torch.int8), (2, 4)).pairs.dtype == torch.int64


def test_a_line_takes_neither_a_matrix_nor_coordinates() -> None:
    with pytest.raises(IncompatibleParts, match="'line', which follows from positions"):
        LineRelation().pairs(SQUARE, (2, 4))
    with pytest.raises(IncompatibleParts, match="'line', which has none"):
        LineRelation().positions(SQUARE, (2, 4))


def test_no_relation_reads_the_row_of_zeros_that_is_added() -> None:
    table = KINDS.with_blank(torch.ones(3, 2))
    assert table.tolist() == [[1.0, 1.0]] * 3 + [[0.0, 0.0]]
