"""Scores by bucket become scores by distance, and their gradients go back."""

import torch

from posattn.backends.triton_kernels.slabs import Fold, Part, columns_between, spread

ROW = torch.tensor([2, 2, 2, 0, 1, 1, 3, 3, 3, 3, 3])  # distances -5 .. 5
COLUMNS = columns_between(-3, 1, 5, 16, 16)
SCORES = torch.arange(24, dtype=torch.float64).view(1, 2, 3, 4)


def bucket_of(column: int) -> int:
    distance = min(max(column + COLUMNS.first, -3), 1)
    return int(ROW[distance + 5])


def test_columns_are_aligned_and_reach_a_tile_beyond_both_ends() -> None:
    assert COLUMNS.first % 16 == 1
    assert COLUMNS.pitch % 16 == 15
    assert COLUMNS.of_keys().pitch % 16 == 1
    assert COLUMNS.first < -3 - 30
    assert COLUMNS.first + COLUMNS.pitch - 1 > 1 + 30


def test_every_column_has_the_score_of_its_distance() -> None:
    slab = spread([Part(SCORES, ROW), Part(SCORES[:, :, :1] * 100, ROW)], COLUMNS, torch.float64)
    expected = torch.stack([SCORES[..., bucket_of(c)] for c in range(COLUMNS.pitch)], -1)
    shared = torch.stack([SCORES[:, :, :1, bucket_of(c)] for c in range(COLUMNS.pitch)], -1)
    torch.testing.assert_close(slab, expected + 100 * shared)


def test_folding_is_the_transpose_of_spreading() -> None:
    band = torch.randn(1, 2, 3, COLUMNS.pitch, dtype=torch.float64)
    found = torch.empty_like(SCORES)
    Fold.of(ROW, COLUMNS, 4).fold(band, found)
    slab = spread([Part(SCORES, ROW)], COLUMNS, torch.float64)
    torch.testing.assert_close((found * SCORES).sum(), (band * slab).sum())
    assert found[0, 0, 0, 0] == sum(
        band[0, 0, 0, c] for c in range(COLUMNS.pitch) if bucket_of(c) == 0
    )
