"""Distances have one sign, and clipping holds them."""

import torch

from posattn.positions import clipped, distances


def test_distance_is_query_position_minus_key_position() -> None:
    found = distances(torch.tensor([[5, 1]]), torch.tensor([[0, 2, 9]]))
    assert found.tolist() == [[[5, 3, -4], [1, -1, -8]]]


def test_one_row_of_queries_or_of_keys_serves_the_whole_batch() -> None:
    one, two = torch.tensor([[0, 1]]), torch.tensor([[0, 1], [4, 6]])
    assert distances(one, two).tolist() == [[[0, -1], [1, 0]], [[-4, -6], [-3, -5]]]
    assert distances(two, one).tolist() == [[[0, -1], [1, 0]], [[4, 3], [6, 5]]]


def test_clipped_rows_of_shaw_are_4_to_8_and_mirrored() -> None:
    """Shaw et al. with K = 4 and 11 tokens: row K + clip(j - i); the last row mirrors the first."""
    positions = torch.arange(11)[None]
    row = 4 - clipped(distances(positions, positions), 4)[0]
    assert row[0].tolist() == [4, 5, 6, 7, 8, 8, 8, 8, 8, 8, 8]
    assert row[10].tolist() == [0, 0, 0, 0, 0, 0, 0, 1, 2, 3, 4]


def test_clipping_at_zero_leaves_one_row_and_one_token_has_distance_zero() -> None:
    positions = torch.arange(5)[None]
    assert clipped(distances(positions, positions), 0).unique().tolist() == [0]
    assert distances(positions[:, :1], positions[:, :1]).tolist() == [[[0]]]
