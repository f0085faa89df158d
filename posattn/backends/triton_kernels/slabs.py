"""Scores laid out by distance, one row per token: what the attention kernels read and write.

A row starts far enough below the smallest distance told apart, and ends far enough above the largest,
for a tile at the border to be read as a whole. Row lengths are one less (queries) or one more (keys) than
a multiple of 16, so that a tile of consecutive positions is an aligned rectangle. The first and
last column of a gradient take what is summed up beyond the ends.
"""

from collections.abc import Sequence
from typing import NamedTuple

import torch
import triton
import triton.language as tl
from torch import Tensor

from posattn.backends.triton_kernels.spread import fold_kernel, spread_kernel

ALIGNMENT = 16


class Part(NamedTuple):
    """One part of a bias: scores by bucket, [batch, heads, tokens, buckets], and the row of buckets."""

    scores: Tensor
    row: Tensor

    def slice(self, batch: slice, heads: slice, tokens: slice) -> "Part":
        """Return the part of some sequences, heads and tokens; size-1 axes stand for all."""
        wanted = zip((batch, heads, tokens), self.scores.shape[:3], strict=True)
        return Part(self.scores[tuple(slice(0, 1) if n == 1 else at for at, n in wanted)], self.row)


class Columns(NamedTuple):
    """Distances `low` to `high` are told apart; a slab's first column is distance `first`."""

    low: int
    high: int
    first: int
    pitch: int
    reach: int

    def of_keys(self) -> "Columns":
        """Return the columns of key scores: they start one lower and are two more."""
        return self._replace(first=self.first - 1, pitch=self.pitch + 2)

    @property
    def ends(self) -> tuple[int, int]:
        """Return the columns of the smallest and of the largest distance told apart."""
        return self.low - self.first, self.high - self.first


def columns_between(low: int, high: int, reach: int, block_query: int, block_key: int) -> Columns:
    """Return the columns of query scores for tiles of this size."""
    margin = block_query + block_key
    first = (low - margin - 1) // ALIGNMENT * ALIGNMENT + 1
    wanted = high + margin + 2 - first
    return Columns(low, high, first, -(-(wanted + 1) // ALIGNMENT) * ALIGNMENT - 1, reach)


def exact(dtype: torch.dtype) -> "tl.dtype":
    """Return the type that kernels add up numbers of this type in."""
    return tl.float64 if dtype == torch.float64 else tl.float32


def spread(parts: Sequence[Part], columns: Columns, dtype: torch.dtype) -> Tensor:
    """Return the sum of the parts by distance, [batch, heads, tokens, columns]."""
    shape = torch.broadcast_shapes(*(part.scores.shape[:3] for part in parts))
    slab = torch.empty(*shape, columns.pitch, dtype=dtype, device=parts[0].scores.device)
    batch, heads, tokens = shape
    block = min(triton.next_power_of_2(columns.pitch), 256)
    block_rows = min(triton.next_power_of_2(tokens), 32)
    grid = (triton.cdiv(tokens, block_rows), triton.cdiv(columns.pitch, block), batch * heads)
    for index, part in enumerate(parts):
        scores = part.scores.expand(*shape, -1)
        spread_kernel[grid](
            scores,
            part.row,
            slab,
            (*scores.stride(), heads),
            columns.pitch,
            tokens,
            columns.low,
            columns.high,
            columns.first,
            columns.reach,
            ADDS=index > 0,
            ACCUMULATE=exact(dtype),
            BLOCK_ROWS=block_rows,
            BLOCK=block,
        )
    return slab


class Fold(NamedTuple):
    """Which columns add up to each bucket: columns in order of bucket, and where each begins."""

    order: Tensor
    starts: Tensor

    @classmethod
    def of(cls, row: Tensor, columns: Columns, num_buckets: int) -> "Fold":
        """Return it for a row of buckets."""
        distance = torch.arange(columns.pitch, device=row.device) + columns.first
        bucket = row[distance.clamp(columns.low, columns.high) + columns.reach]
        in_order, order = torch.sort(bucket, stable=True)
        each = torch.arange(num_buckets + 1, device=row.device, dtype=in_order.dtype)
        return cls(order.int(), torch.searchsorted(in_order, each).int())

    def fold(self, band: Tensor, target: Tensor) -> None:
        """Write the sums of a band of gradients, [batch, heads, tokens, columns], by bucket."""
        rows, buckets = band[..., 0].numel(), target.shape[-1]
        block = min(triton.next_power_of_2(buckets), 64)
        block_rows = min(triton.next_power_of_2(rows), 64)
        fold_kernel[(triton.cdiv(rows, block_rows), triton.cdiv(buckets, block))](
            band,
            self.order,
            self.starts,
            target,
            band.shape[-1],
            rows,
            buckets,
            BLOCK_ROWS=block_rows,
            BLOCK=block,
            ACCUMULATE=exact(band.dtype),
        )
