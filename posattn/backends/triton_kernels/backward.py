"""Attention backward: one kernel by query block, one by key block; each number is written once.

The gradient of a logit goes to its query's row of scores by distance, to its key's row, and to the key
bias. Within a row no two visible pairs have the same distance, so tiles write and never add; what
lies at the saturated ends is summed in registers and goes to the row's first and last column. Queries
of padding (position -1) share a distance to each key: their sum is added to that column at the end.
"""

from typing import no_type_check

import triton
import triton.language as tl

from posattn.backends.triton_kernels.bands import (
    add_padding,
    write_by_key,
    write_by_query,
    write_ends,
)
from posattn.backends.triton_kernels.logits import (
    VARYING,
    list_of,
    of_head,
    places_of,
    starts,
    tile_logits,
)
from posattn.backends.triton_kernels.tile import GENERAL, LOW, kept, load_rows, store_rows


@triton.jit
@no_type_check
def gradients_of_tile(logits, grad, value, log_sum, delta, chance, heads, batch, head, rows, columns,
                      DROPS: tl.constexpr, PRECISION: tl.constexpr):  # fmt: skip
    """Return the probabilities after dropout and the gradient of the logits."""
    probs = tl.exp2(logits - log_sum[:, None])
    of_probs = tl.dot(grad, tl.trans(value), input_precision=PRECISION, out_dtype=delta.dtype)
    dropped = probs
    if DROPS:
        keeps = kept(chance, heads, batch, head, rows, columns)
        dropped = tl.where(keeps, probs * chance[2], 0.0)
        of_probs = tl.where(keeps, of_probs * chance[2], 0.0)
    return dropped, probs * (of_probs - delta[:, None])


@triton.jit(do_not_specialize=VARYING)
@no_type_check
def query_backward_kernel(query, key, value, grad, log_sums, deltas, of_query, band, strides, slabs, ends,
                          places, lists, sizes, band_pitch, band_shear, scale, chance,
                          first_batch, first_head, first_row, num_heads, num_left, low, high, first, window,
                   group_stride, sequence_stride, list_length, threshold, query_stride, key_stride,
                   bias_batch, bias_head, HAS: tl.constexpr, RULES: tl.constexpr, BANDS: tl.constexpr,
                          DROPS: tl.constexpr, SHAPE: tl.constexpr, ACCUMULATE: tl.constexpr,
                          PRECISION: tl.constexpr):  # fmt: skip
    """Write the gradient of the queries and, if `BANDS`, of their scores by distance."""
    block = tl.program_id(0)
    head, batch = tl.program_id(1).to(tl.int64), tl.program_id(2).to(tl.int64)
    query_start = block * SHAPE[4]
    rows = query_start + tl.arange(0, SHAPE[4])
    row_there = rows < sizes[0]
    line = (batch * tl.num_programs(1) + head) * sizes[0]
    band += (line + query_start) * band_pitch
    query, key, value, grad = starts((query, key, value, grad), strides, batch, head)
    heads = (first_batch, first_head, first_row, num_heads, num_left)
    limits = (low, high, first, window)
    tiles = (lists[0], lists[1], group_stride, sequence_stride, list_length)
    chance = (chance[0], threshold, chance[1])
    of_slabs, of_ends = of_head(slabs, ends, batch, head, bias_batch, bias_head)
    of_places = places_of(places, batch, query_stride, key_stride)
    is_left = heads[1] + head < heads[4]
    listed, kind_ends = list_of(tiles, batch, is_left, block, RULES[4])
    query_tile = load_rows(query, rows, strides[0][2], row_there, SHAPE[0], SHAPE[1], True)
    grad_tile = load_rows(grad, rows, strides[3][2], row_there, SHAPE[2], SHAPE[3], True)
    log_sum = tl.load(log_sums + line + rows, mask=row_there, other=float("inf"))
    delta = tl.load(deltas + line + rows, mask=row_there, other=0.0)
    total = tl.full([SHAPE[4], SHAPE[1]], 0.0, ACCUMULATE)
    at_low, at_high = tl.full([SHAPE[4]], 0.0, ACCUMULATE), tl.full([SHAPE[4]], 0.0, ACCUMULATE)
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
                value_tile = load_rows(value, columns, strides[2][2], there, SHAPE[2], SHAPE[3],
                                       kind == GENERAL)  # fmt: skip
                logits = tile_logits(query_tile, key_tile, scale[1], query_start, key_start, rows, columns,
                                     of_slabs, of_ends, of_places, limits, is_left, sizes, kind, HAS,
                                     RULES, SHAPE, ACCUMULATE, PRECISION)  # fmt: skip
                _, of_logits = gradients_of_tile(logits, grad_tile, value_tile, log_sum, delta, chance, heads,
                                                 batch, head, rows, columns, DROPS, PRECISION)  # fmt: skip
                total = tl.dot(of_logits.to(key_tile.dtype), key_tile, total, input_precision=PRECISION,
                               out_dtype=ACCUMULATE)  # fmt: skip
                if BANDS:
                    at_low, at_high = write_by_query(
                        band, band_pitch, band_shear, of_logits, query_start, key_start, rows,
                        columns, sizes, of_places, limits, at_low, at_high, kind, SHAPE)  # fmt: skip
        begin = end
    store_rows(
        of_query + line * SHAPE[0], rows, SHAPE[0], row_there, total * scale[0], SHAPE[0], SHAPE[1]
    )
    if BANDS:
        write_ends(band, band_pitch, tl.arange(0, SHAPE[4]), row_there, at_low, at_high)


@triton.jit(do_not_specialize=VARYING)
@no_type_check
def key_backward_kernel(query, key, value, grad, log_sums, deltas, of_key, of_value, of_bias, band, strides,
                        slabs, ends, places, lists, sizes, band_pitch, band_shear, scale, chance,
                   first_batch, first_head, first_row, num_heads, num_left, low, high, first, window,
                   group_stride, sequence_stride, list_length, threshold, query_stride, key_stride,
                   bias_batch, bias_head, HAS: tl.constexpr, RULES: tl.constexpr, BANDS: tl.constexpr,
                        DROPS: tl.constexpr, SHAPE: tl.constexpr, ACCUMULATE: tl.constexpr,
                        PRECISION: tl.constexpr):  # fmt: skip
    """Write the gradients of keys, values, key bias and, if `BANDS`, of key scores by distance."""
    block = tl.program_id(0)
    head, batch = tl.program_id(1).to(tl.int64), tl.program_id(2).to(tl.int64)
    key_start = block * SHAPE[5]
    columns = key_start + SHAPE[5] - 1 - tl.arange(0, SHAPE[5])
    column_there = columns < sizes[1]
    line = batch * tl.num_programs(1) + head
    log_sums += line * sizes[0]
    deltas += line * sizes[0]
    band += (line * sizes[1] + key_start) * band_pitch
    query, key, value, grad = starts((query, key, value, grad), strides, batch, head)
    heads = (first_batch, first_head, first_row, num_heads, num_left)
    limits = (low, high, first, window)
    tiles = (lists[0], lists[1], group_stride, sequence_stride, list_length)
    chance = (chance[0], threshold, chance[1])
    of_slabs, of_ends = of_head(slabs, ends, batch, head, bias_batch, bias_head)
    of_places = places_of(places, batch, query_stride, key_stride)
    is_left = heads[1] + head < heads[4]
    listed, kind_ends = list_of(tiles, batch, is_left, block, RULES[4])
    key_tile = load_rows(key, columns, strides[1][2], column_there, SHAPE[0], SHAPE[1], True)
    value_tile = load_rows(value, columns, strides[2][2], column_there, SHAPE[2], SHAPE[3], True)
    key_total = tl.full([SHAPE[5], SHAPE[1]], 0.0, ACCUMULATE)
    value_total = tl.full([SHAPE[5], SHAPE[3]], 0.0, ACCUMULATE)
    bias_total, of_padding = (
        tl.full([SHAPE[5]], 0.0, ACCUMULATE),
        tl.full([SHAPE[5]], 0.0, ACCUMULATE),
    )
    at_low, at_high = tl.full([SHAPE[5]], 0.0, ACCUMULATE), tl.full([SHAPE[5]], 0.0, ACCUMULATE)
    begin = 0
    for kind in tl.static_range(4):
        end = tl.load(kind_ends + kind)
        if HAS[0] or HAS[1] or kind == LOW or kind == GENERAL:
            for at in range(begin, end):
                query_start = tl.load(listed + at) * SHAPE[4]
                rows = query_start + tl.arange(0, SHAPE[4])
                there = rows < sizes[0]
                query_tile = load_rows(query, rows, strides[0][2], there, SHAPE[0], SHAPE[1], True)
                grad_tile = load_rows(grad, rows, strides[3][2], there, SHAPE[2], SHAPE[3], True)
                log_sum = tl.load(log_sums + rows, mask=there, other=float("inf"))
                delta = tl.load(deltas + rows, mask=there, other=0.0)
                logits = tile_logits(query_tile, key_tile, scale[1], query_start, key_start, rows, columns,
                                     of_slabs, of_ends, of_places, limits, is_left, sizes, kind, HAS,
                                     RULES, SHAPE, ACCUMULATE, PRECISION)  # fmt: skip
                probs, of_logits = gradients_of_tile(
                    logits, grad_tile, value_tile, log_sum, delta, chance, heads, batch, head, rows,
                    columns, DROPS, PRECISION)  # fmt: skip
                value_total = tl.dot(tl.trans(probs.to(grad_tile.dtype)), grad_tile, value_total,
                                     input_precision=PRECISION, out_dtype=ACCUMULATE)  # fmt: skip
                key_total = tl.dot(tl.trans(of_logits.to(query_tile.dtype)), query_tile, key_total,
                                   input_precision=PRECISION, out_dtype=ACCUMULATE)  # fmt: skip
                if HAS[2]:
                    bias_total += tl.sum(of_logits, 0)
                if BANDS:
                    at_low, at_high, of_padding = write_by_key(
                        band, band_pitch, band_shear, of_logits, query_start, key_start, rows,
                        columns, sizes, of_places, limits, at_low, at_high, of_padding, kind,
                        SHAPE)  # fmt: skip
        begin = end
    line *= sizes[1]
    store_rows(
        of_key + line * SHAPE[0],
        columns,
        SHAPE[0],
        column_there,
        key_total * scale[0],
        SHAPE[0],
        SHAPE[1],
    )
    store_rows(
        of_value + line * SHAPE[2], columns, SHAPE[2], column_there, value_total, SHAPE[2], SHAPE[3]
    )
    if HAS[2]:
        tl.store(of_bias + line + columns, bias_total, mask=column_there)
    if BANDS:
        at_low, at_high = add_padding(band, band_pitch, of_padding, columns, column_there, of_places, limits,
                                      at_low, at_high, SHAPE)  # fmt: skip
        write_ends(band, band_pitch, columns - key_start, column_there, at_low, at_high)
