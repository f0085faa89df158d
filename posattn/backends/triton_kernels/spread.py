"""Scores by bucket to scores by distance, and the gradient back: a sum of columns, in a fixed order."""

from typing import no_type_check

import triton
import triton.language as tl


@triton.jit(do_not_specialize=("pitch", "num_rows", "low", "high", "first", "reach"))
@no_type_check
def spread_kernel(scores, row, slab, strides, pitch, num_rows, low, high, first, reach,
                  ADDS: tl.constexpr, ACCUMULATE: tl.constexpr, BLOCK_ROWS: tl.constexpr,
                  BLOCK: tl.constexpr):  # fmt: skip
    """Write, or add, for each column of the slab the score of its distance's bucket."""
    line = tl.program_id(2).to(tl.int64)
    head, batch = line % strides[4], line // strides[4]
    rows = tl.program_id(0) * BLOCK_ROWS + tl.arange(0, BLOCK_ROWS)
    columns = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    distance = tl.minimum(tl.maximum(columns + first, low), high)
    bucket = tl.load(row + distance + reach, mask=columns < pitch, other=0)
    there = (rows < num_rows)[:, None] & (columns < pitch)[None, :]
    start = scores + batch * strides[0] + head * strides[1]
    values = tl.load(start + rows[:, None].to(tl.int64) * strides[2] + bucket[None, :] * strides[3],
                     mask=there, other=0.0)  # fmt: skip
    target = slab + (line * num_rows + rows[:, None]) * pitch + columns[None, :]
    if ADDS:
        values = values.to(ACCUMULATE) + tl.load(target, mask=there, other=0.0).to(ACCUMULATE)
    tl.store(target, values.to(slab.dtype.element_ty), mask=there)


@triton.jit(do_not_specialize=("pitch", "num_rows", "num_buckets"))
@no_type_check
def fold_kernel(band, order, starts, scores, pitch, num_rows, num_buckets, BLOCK_ROWS: tl.constexpr,
                BLOCK: tl.constexpr, ACCUMULATE: tl.constexpr):  # fmt: skip
    """Write for each bucket the sum of its columns: `order` lists columns by bucket from `starts` on."""
    rows = tl.program_id(0) * BLOCK_ROWS + tl.arange(0, BLOCK_ROWS)
    buckets = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    row_there, there = (rows < num_rows)[:, None], buckets < num_buckets
    begin = tl.load(starts + buckets, mask=there, other=0)
    count = tl.load(starts + buckets + 1, mask=there, other=0) - begin
    line = band + rows[:, None].to(tl.int64) * pitch
    total = tl.zeros([BLOCK_ROWS, BLOCK], ACCUMULATE)
    for which in range(tl.max(count, 0)):
        more = which < count
        column = tl.load(order + begin + which, mask=more, other=0)
        total += tl.load(line + column[None, :], mask=row_there & more[None, :], other=0.0).to(
            ACCUMULATE
        )
    target = scores + rows[:, None].to(tl.int64) * num_buckets + buckets[None, :]
    tl.store(target, total.to(scores.dtype.element_ty), mask=row_there & there[None, :])
