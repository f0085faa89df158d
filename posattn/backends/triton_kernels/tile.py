"""One tile of logits: the bias that is added to it, the pairs that are visible, what dropout keeps.

Keys of a tile are taken from the last to the first, so that along a row of consecutive positions the
distance rises by one. Four kinds of tile:

LOW, HIGH   every pair is at or beyond the smallest, or largest, distance that is told apart: the bias
            is one number per query plus one number per key
SHEAR       positions are consecutive on both sides: what query i reads of its row of scores by distance
            is a run in memory that starts one later than that of query i - 1; seen with a row length
            longer by one, the tile is a plain rectangle
GENERAL     everything else, hidden pairs included: one column per pair

LOW, HIGH and SHEAR tiles hide nothing.
"""

from typing import no_type_check

import triton
import triton.language as tl

LOW = tl.constexpr(0)
HIGH = tl.constexpr(1)
SHEAR = tl.constexpr(2)
GENERAL = tl.constexpr(3)
NUM_KINDS = tl.constexpr(4)
ALIGNMENT = tl.constexpr(16)
LOG2_E = tl.constexpr(1.4426950408889634)


@triton.jit
@no_type_check
def query_terms(slab, pitch, shear, shift, query_start, column, there, KIND: tl.constexpr,
                SHAPE: tl.constexpr):  # fmt: skip
    """Return the tile's numbers out of query scores by distance (SHEAR and GENERAL)."""
    i = tl.arange(0, SHAPE[4])[:, None]
    start = slab + query_start.to(tl.int64) * pitch
    if KIND == SHEAR:
        run = tl.arange(0, SHAPE[5])[None, :]
        return tl.load(start + tl.multiple_of(shift - (SHAPE[5] - 1), ALIGNMENT) + i * shear + run)
    return tl.load(start + i * pitch + column, mask=there, other=0.0)


@triton.jit
@no_type_check
def key_terms(slab, pitch, shear, shift, key_start, column, there, KIND: tl.constexpr,
              SHAPE: tl.constexpr):  # fmt: skip
    """Return the tile's numbers out of key scores by distance, whose first column is one lower."""
    j = SHAPE[5] - 1 - tl.arange(0, SHAPE[5])
    start = slab + key_start.to(tl.int64) * pitch
    if KIND == SHEAR:
        run = tl.arange(0, SHAPE[4])[None, :]
        start += tl.multiple_of(shift + 1, ALIGNMENT)
        return tl.trans(tl.load(start + j[:, None] * shear + run))
    return tl.load(start + j[None, :] * pitch + column + 1, mask=there, other=0.0)


@triton.jit
@no_type_check
def visible_pairs(rows, columns, there, query_seen, key_seen, query_documents, key_documents, key_visible,
                  window, is_left, RULES: tl.constexpr, sizes):  # fmt: skip
    """Return which pairs of a GENERAL tile are visible; `RULES` says which rules there are."""
    row_there = rows < sizes[0]
    column_there = columns < sizes[1]
    seen = there
    if RULES[0]:
        visible = tl.load(key_visible + columns, mask=column_there, other=0)
        seen = seen & (visible != 0)[None, :]
    if RULES[1]:
        of_query = tl.load(query_documents + rows, mask=row_there, other=0)
        of_key = tl.load(key_documents + columns, mask=column_there, other=0)
        seen = seen & (of_query[:, None] == of_key[None, :])
    if RULES[2] or RULES[3] or RULES[4]:
        at_query = tl.load(query_seen + rows, mask=row_there, other=0)
        at_key = tl.load(key_seen + columns, mask=column_there, other=0)
        apart = at_query[:, None] - at_key[None, :]
        if RULES[2]:
            seen = seen & (apart <= window) & (apart >= -window)
        if RULES[3]:
            seen = seen & (apart >= 0)
        if RULES[4]:
            seen = seen & tl.where(is_left, apart >= 0, apart <= 0)
    return seen


@triton.jit
@no_type_check
def kept(chance, heads, batch, head, rows, columns):
    """Return which probabilities dropout keeps: a counter-based draw per pair, the same in backward."""
    seed, threshold, _ = chance
    zero = tl.zeros([rows.shape[0], columns.shape[0]], tl.int32)
    which = ((heads[0] + batch) * heads[3] + heads[1] + head).to(tl.int32) + zero
    draw, _, _, _ = tl.philox(
        tl.load(seed), columns[None, :] + zero, rows[:, None] + heads[2] + zero, which, zero, 7
    )
    return draw.to(tl.uint32, bitcast=True) >= threshold.to(tl.uint32)


@triton.jit
@no_type_check
def load_rows(start, rows, stride, there, WIDTH: tl.constexpr, BLOCK_WIDTH: tl.constexpr,
              MASKED: tl.constexpr):  # fmt: skip
    """Return rows of a matrix of any width, padded with zeros to a power of two."""
    channel = tl.arange(0, BLOCK_WIDTH)
    pointers = start + rows[:, None] * stride + channel[None, :]
    if WIDTH == BLOCK_WIDTH:
        if MASKED:
            return tl.load(pointers, mask=there[:, None], other=0.0)
        return tl.load(pointers)
    if MASKED:
        return tl.load(pointers, mask=there[:, None] & (channel < WIDTH)[None, :], other=0.0)
    return tl.load(pointers, mask=(channel < WIDTH)[None, :], other=0.0)


@triton.jit
@no_type_check
def store_rows(start, rows, stride, there, values, WIDTH: tl.constexpr, BLOCK_WIDTH: tl.constexpr):
    """Write rows of a matrix of any width out of a padded tile."""
    channel = tl.arange(0, BLOCK_WIDTH)
    pointers = start + rows[:, None] * stride + channel[None, :]
    mask = there[:, None] & (channel < WIDTH)[None, :]
    tl.store(pointers, values.to(start.dtype.element_ty), mask=mask)
