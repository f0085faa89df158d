"""Attention backward: one kernel by query block, one by key block; each number is written once.

The gradient of a logit goes to its query's row of scores by distance, to its key's row, and to the key
bias. Within a row no two visible pairs have the same distance, so tiles write and never add; what
lies at the saturated ends is summed in registers and goes to the row's first and last column. Queries
of padding (position -1) share a distance to each key: their sum is added to that column at the end.
"""

import triton
import triton.language as tl

from posattn.backends.triton_kernels.logits import list_of, of_head, places_of, tile_logits
from posattn.backends.triton_kernels.tile import (
    ALIGNMENT,
    GENERAL,
    HIGH,
    LOW,
    SHEAR,
    kept,
    load_rows,
    store_rows,
)


@triton.jit
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


@triton.jit
def split_by_distance(of_logits, at_query, at_key, limits):
    """Return which pairs lie strictly within the distances told apart, and beyond each end."""
    apart = at_query[:, None] - at_key[None, :]
    is_low = apart <= limits[0]
    is_high = (apart >= limits[1]) & (apart > limits[0])
    column = tl.minimum(tl.maximum(apart, limits[0]), limits[1]) - limits[2]
    below = tl.where(is_low, of_logits, 0.0)
    above = tl.where(is_high, of_logits, 0.0)
    return (apart > limits[0]) & (apart < limits[1]), column, below, above


@triton.jit
def query_backward_kernel(query, key, value, grad, log_sums, deltas, of_query, band, strides, slabs, ends,
                          places, tiles, sizes, band_pitch, band_shear, scale, limits,
                          heads, chance, HAS: tl.constexpr, RULES: tl.constexpr, BANDS: tl.constexpr,
                          DROPS: tl.constexpr, WIDTH: tl.constexpr, BLOCK_WIDTH: tl.constexpr,
                          VALUE_WIDTH: tl.constexpr, BLOCK_VALUE: tl.constexpr, BLOCK_Q: tl.constexpr,
                          BLOCK_K: tl.constexpr, ACCUMULATE: tl.constexpr,
                          PRECISION: tl.constexpr):  # fmt: skip
    """Write the gradient of the queries and, if `BANDS`, of their scores by distance."""
    block, head, batch = tl.program_id(0), tl.program_id(1).to(tl.int64), tl.program_id(2).to(tl.int64)
    query_start = block * BLOCK_Q
    rows = query_start + tl.arange(0, BLOCK_Q)
    row_there = rows < sizes[0]
    line = batch * tl.num_programs(1) + head
    query += batch * strides[0][0] + head * strides[0][1]
    key += batch * strides[1][0] + head * strides[1][1]
    value += batch * strides[2][0] + head * strides[2][1]
    grad += batch * strides[3][0] + head * strides[3][1]
    of_query += line * sizes[0] * WIDTH
    band += (line * sizes[0] + query_start) * band_pitch
    of_slabs, of_ends = of_head(slabs, ends, batch, head)
    of_places = places_of(places, batch)
    is_left = heads[1] + head < heads[4]
    listed, kind_ends = list_of(tiles, batch, is_left, block, RULES[4])
    query_tile = load_rows(query, rows, strides[0][2], row_there, WIDTH, BLOCK_WIDTH, True)
    grad_tile = load_rows(grad, rows, strides[3][2], row_there, VALUE_WIDTH, BLOCK_VALUE, True)
    log_sum = tl.load(log_sums + line * sizes[0] + rows, mask=row_there, other=float("inf"))
    delta = tl.load(deltas + line * sizes[0] + rows, mask=row_there, other=0.0)
    total = tl.zeros([BLOCK_Q, BLOCK_WIDTH], ACCUMULATE)
    at_low, at_high = tl.zeros([BLOCK_Q], ACCUMULATE), tl.zeros([BLOCK_Q], ACCUMULATE)
    i, j = tl.arange(0, BLOCK_Q)[:, None], tl.arange(0, BLOCK_K)[None, :]
    begin = 0
    for kind in tl.static_range(4):
        end = tl.load(kind_ends + kind)
        if HAS[0] or HAS[1] or kind == LOW or kind == GENERAL:
            for at in range(begin, end):
                key_start = tl.load(listed + at) * BLOCK_K
                columns = key_start + BLOCK_K - 1 - tl.arange(0, BLOCK_K)
                there = columns < sizes[1]
                key_tile = load_rows(key, columns, strides[1][2], there, WIDTH, BLOCK_WIDTH,
                                     kind == GENERAL)  # fmt: skip
                value_tile = load_rows(value, columns, strides[2][2], there, VALUE_WIDTH, BLOCK_VALUE,
                                       kind == GENERAL)  # fmt: skip
                logits = tile_logits(query_tile, key_tile, scale[1], query_start, key_start, rows, columns,
                                     of_slabs, of_ends, of_places, limits, is_left, sizes, kind, HAS,
                                     RULES, BLOCK_Q, BLOCK_K, ACCUMULATE, PRECISION)  # fmt: skip
                _, of_logits = gradients_of_tile(logits, grad_tile, value_tile, log_sum, delta, chance,
                                                 heads, batch, head, rows, columns, DROPS,
                                                 PRECISION)  # fmt: skip
                total = tl.dot(of_logits.to(key_tile.dtype), key_tile, total,
                               input_precision=PRECISION, out_dtype=ACCUMULATE)  # fmt: skip
                if BANDS:
                    if kind == LOW:
                        at_low += tl.sum(of_logits, 1)
                    elif kind == HIGH:
                        at_high += tl.sum(of_logits, 1)
                    elif kind == SHEAR:
                        shift = tl.load(of_places[0] + query_start) - tl.load(of_places[1] + key_start)
                        shift = tl.multiple_of(shift - limits[2] - (BLOCK_K - 1), ALIGNMENT)
                        tl.store(band + shift + i * band_shear + j, of_logits.to(band.dtype.element_ty))
                    else:
                        at_query = tl.load(of_places[0] + rows, mask=row_there, other=0)
                        at_key = tl.load(of_places[1] + columns, mask=there, other=0)
                        between, column, below, above = split_by_distance(of_logits, at_query, at_key, limits)
                        at_low += tl.sum(below, 1)
                        at_high += tl.sum(above, 1)
                        between = between & (logits > float("-inf"))
                        tl.store(band + i * band_pitch + column, of_logits.to(band.dtype.element_ty),
                                 mask=between)  # fmt: skip
        begin = end
    store_rows(of_query, rows, WIDTH, row_there, total * scale[0], WIDTH, BLOCK_WIDTH)
    if BANDS:
        local = tl.arange(0, BLOCK_Q) * band_pitch
        tl.store(band + local, at_low.to(band.dtype.element_ty), mask=row_there)
        tl.store(band + local + band_pitch - 1, at_high.to(band.dtype.element_ty), mask=row_there)


@triton.jit
def key_backward_kernel(query, key, value, grad, log_sums, deltas, of_key, of_value, of_bias, band, strides,
                        slabs, ends, places, tiles, sizes, band_pitch, band_shear, scale,
                        limits, heads, chance, HAS: tl.constexpr, RULES: tl.constexpr, BANDS: tl.constexpr,
                        DROPS: tl.constexpr, WIDTH: tl.constexpr, BLOCK_WIDTH: tl.constexpr,
                        VALUE_WIDTH: tl.constexpr, BLOCK_VALUE: tl.constexpr, BLOCK_Q: tl.constexpr,
                        BLOCK_K: tl.constexpr, ACCUMULATE: tl.constexpr,
                        PRECISION: tl.constexpr):  # fmt: skip
    """Write the gradients of keys, values, key bias and, if `BANDS`, of key scores by distance."""
    block, head, batch = tl.program_id(0), tl.program_id(1).to(tl.int64), tl.program_id(2).to(tl.int64)
    key_start = block * BLOCK_K
    columns = key_start + BLOCK_K - 1 - tl.arange(0, BLOCK_K)
    column_there = columns < sizes[1]
    line = batch * tl.num_programs(1) + head
    query += batch * strides[0][0] + head * strides[0][1]
    key += batch * strides[1][0] + head * strides[1][1]
    value += batch * strides[2][0] + head * strides[2][1]
    grad += batch * strides[3][0] + head * strides[3][1]
    of_key += line * sizes[1] * WIDTH
    of_value += line * sizes[1] * VALUE_WIDTH
    band += (line * sizes[1] + key_start) * band_pitch
    of_slabs, of_ends = of_head(slabs, ends, batch, head)
    of_places = places_of(places, batch)
    is_left = heads[1] + head < heads[4]
    listed, kind_ends = list_of(tiles, batch, is_left, block, RULES[4])
    key_tile = load_rows(key, columns, strides[1][2], column_there, WIDTH, BLOCK_WIDTH, True)
    value_tile = load_rows(value, columns, strides[2][2], column_there, VALUE_WIDTH, BLOCK_VALUE, True)
    key_total = tl.zeros([BLOCK_K, BLOCK_WIDTH], ACCUMULATE)
    value_total = tl.zeros([BLOCK_K, BLOCK_VALUE], ACCUMULATE)
    bias_total, of_padding = tl.zeros([BLOCK_K], ACCUMULATE), tl.zeros([BLOCK_K], ACCUMULATE)
    at_low, at_high = tl.zeros([BLOCK_K], ACCUMULATE), tl.zeros([BLOCK_K], ACCUMULATE)
    i = tl.arange(0, BLOCK_Q)
    j = BLOCK_K - 1 - tl.arange(0, BLOCK_K)
    begin = 0
    for kind in tl.static_range(4):
        end = tl.load(kind_ends + kind)
        if HAS[0] or HAS[1] or kind == LOW or kind == GENERAL:
            for at in range(begin, end):
                query_start = tl.load(listed + at) * BLOCK_Q
                rows = query_start + i
                there = rows < sizes[0]
                query_tile = load_rows(query, rows, strides[0][2], there, WIDTH, BLOCK_WIDTH, True)
                grad_tile = load_rows(grad, rows, strides[3][2], there, VALUE_WIDTH, BLOCK_VALUE, True)
                log_sum = tl.load(log_sums + line * sizes[0] + rows, mask=there, other=float("inf"))
                delta = tl.load(deltas + line * sizes[0] + rows, mask=there, other=0.0)
                logits = tile_logits(query_tile, key_tile, scale[1], query_start, key_start, rows, columns,
                                     of_slabs, of_ends, of_places, limits, is_left, sizes, kind, HAS,
                                     RULES, BLOCK_Q, BLOCK_K, ACCUMULATE, PRECISION)  # fmt: skip
                probs, of_logits = gradients_of_tile(logits, grad_tile, value_tile, log_sum, delta, chance,
                                                     heads, batch, head, rows, columns, DROPS,
                                                     PRECISION)  # fmt: skip
                value_total = tl.dot(tl.trans(probs.to(grad_tile.dtype)), grad_tile, value_total,
                                     input_precision=PRECISION, out_dtype=ACCUMULATE)  # fmt: skip
                key_total = tl.dot(tl.trans(of_logits.to(query_tile.dtype)), query_tile, key_total,
                                   input_precision=PRECISION, out_dtype=ACCUMULATE)  # fmt: skip
                if HAS[2]:
                    bias_total += tl.sum(of_logits, 0)
                if BANDS:
                    if kind == LOW:
                        at_low += tl.sum(of_logits, 0)
                    elif kind == HIGH:
                        at_high += tl.sum(of_logits, 0)
                    elif kind == SHEAR:
                        shift = tl.load(of_places[0] + query_start) - tl.load(of_places[1] + key_start)
                        shift = tl.multiple_of(shift - limits[2] + 1, ALIGNMENT)
                        tl.store(band + shift + j[:, None] * band_shear + i[None, :],
                                 tl.trans(of_logits.to(band.dtype.element_ty)))  # fmt: skip
                    else:
                        at_query = tl.load(of_places[0] + rows, mask=there, other=0)
                        at_key = tl.load(of_places[1] + columns, mask=column_there, other=0)
                        is_token = (at_query >= 0)[:, None]
                        of_padding += tl.sum(tl.where(is_token, 0.0, of_logits), 0)
                        of_logits = tl.where(is_token, of_logits, 0.0)
                        between, column, below, above = split_by_distance(of_logits, at_query, at_key, limits)
                        at_low += tl.sum(below, 0)
                        at_high += tl.sum(above, 0)
                        between = between & is_token & (logits > float("-inf"))
                        tl.store(band + j[None, :] * band_pitch + column + 1,
                                 of_logits.to(band.dtype.element_ty), mask=between)  # fmt: skip
        begin = end
    store_rows(of_key, columns, WIDTH, column_there, key_total * scale[0], WIDTH, BLOCK_WIDTH)
    store_rows(of_value, columns, VALUE_WIDTH, column_there, value_total, VALUE_WIDTH, BLOCK_VALUE)
    if HAS[2]:
        tl.store(of_bias + line * sizes[1] + columns, bias_total, mask=column_there)
    if BANDS:
        at_key = tl.load(of_places[1] + columns, mask=column_there, other=0)
        apart = -1 - at_key
        is_low = apart <= limits[0]
        is_high = (apart >= limits[1]) & (apart > limits[0])
        at_low += tl.where(is_low, of_padding, 0.0)
        at_high += tl.where(is_high, of_padding, 0.0)
        local = j * band_pitch
        tl.store(band + local, at_low.to(band.dtype.element_ty), mask=column_there)
        tl.store(band + local + band_pitch - 1, at_high.to(band.dtype.element_ty), mask=column_there)
        adds = column_there & (of_padding != 0) & (apart > limits[0]) & (apart < limits[1])
        tl.debug_barrier()
        cell = band + local + apart - limits[2] + 1
        sums = tl.load(cell, mask=adds, other=0.0).to(ACCUMULATE) + of_padding
        tl.store(cell, sums.to(band.dtype.element_ty), mask=adds)
