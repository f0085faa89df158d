"""Attention forward: one program per block of queries, online softmax over the tiles of its list."""

from typing import no_type_check

import triton
import triton.language as tl

from posattn.backends.triton_kernels.logits import (
    VARYING,
    list_of,
    of_head,
    places_of,
    starts,
    tile_logits,
)
from posattn.backends.triton_kernels.tile import GENERAL, LOW, kept, load_rows, store_rows


@triton.jit(do_not_specialize=VARYING)
@no_type_check
def forward_kernel(query, key, value, out, log_sums, strides, slabs, ends, places, lists, sizes, scale,
                   chance, first_batch, first_head, first_row, num_heads, num_left, low, high, first, window,
                   group_stride, sequence_stride, list_length, threshold, query_stride, key_stride,
                   bias_batch, bias_head, HAS: tl.constexpr, RULES: tl.constexpr, DROPS: tl.constexpr,
                   SHAPE: tl.constexpr, ACCUMULATE: tl.constexpr, PRECISION: tl.constexpr):  # fmt: skip
    """Write the attended values and log2 of the sum of exponentials, infinite if a query is blind."""
    block = tl.program_id(0)
    head, batch = tl.program_id(1).to(tl.int64), tl.program_id(2).to(tl.int64)
    query_start = block * SHAPE[4]
    rows = query_start + tl.arange(0, SHAPE[4])
    row_there = rows < sizes[0]
    query, key, value, out = starts((query, key, value, out), strides, batch, head)
    heads = (first_batch, first_head, first_row, num_heads, num_left)
    limits = (low, high, first, window)
    tiles = (lists[0], lists[1], group_stride, sequence_stride, list_length)
    chance = (chance[0], threshold, chance[1])
    of_slabs, of_ends = of_head(slabs, ends, batch, head, bias_batch, bias_head)
    of_places = places_of(places, batch, query_stride, key_stride)
    is_left = heads[1] + head < heads[4]
    listed, kind_ends = list_of(tiles, batch, is_left, block, RULES[4])
    query_tile = load_rows(query, rows, strides[0][2], row_there, SHAPE[0], SHAPE[1], True)
    highest = tl.full([SHAPE[4]], float("-inf"), ACCUMULATE)
    total = tl.full([SHAPE[4]], 0.0, ACCUMULATE)
    attended = tl.full([SHAPE[4], SHAPE[3]], 0.0, ACCUMULATE)
    begin = 0
    for kind in tl.static_range(4):
        end = tl.load(kind_ends + kind)
        if HAS[0] or HAS[1] or kind == LOW or kind == GENERAL:
            for at in range(begin, end):
                key_start = tl.load(listed + at) * SHAPE[5]
                columns = key_start + SHAPE[5] - 1 - tl.arange(0, SHAPE[5])
                there = columns < sizes[1]
                key_tile = load_rows(key, columns, strides[1][2], there, SHAPE[0], SHAPE[1],
                                     kind == GENERAL)  # fmt: skip
                logits = tile_logits(query_tile, key_tile, scale, query_start, key_start, rows, columns,
                                     of_slabs, of_ends, of_places, limits, is_left, sizes, kind, HAS,
                                     RULES, SHAPE, ACCUMULATE, PRECISION)  # fmt: skip
                value_tile = load_rows(value, columns, strides[2][2], there, SHAPE[2], SHAPE[3],
                                       kind == GENERAL)  # fmt: skip
                above = tl.maximum(highest, tl.max(logits, 1))
                level = tl.where(above == float("-inf"), 0.0, above)
                probs = tl.exp2(logits - level[:, None])
                shrink = tl.exp2(highest - level)
                total = total * shrink + tl.sum(probs, 1)
                if DROPS:
                    probs = tl.where(kept(chance, heads, batch, head, rows, columns), probs, 0.0)
                attended = tl.dot(probs.to(value_tile.dtype), value_tile, attended * shrink[:, None],
                                  input_precision=PRECISION, out_dtype=ACCUMULATE)  # fmt: skip
                highest = above
        begin = end
    sees = total > 0
    total = tl.where(sees, total, 1.0)
    store_rows(
        out,
        rows,
        strides[3][2],
        row_there,
        attended * (chance[2] / total)[:, None],
        SHAPE[2],
        SHAPE[3],
    )
    log_sum = tl.where(sees, highest + tl.log2(total), float("inf"))
    line = (batch * tl.num_programs(1) + head) * sizes[0]
    tl.store(log_sums + line + rows, log_sum, mask=row_there)
