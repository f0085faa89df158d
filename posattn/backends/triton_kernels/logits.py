"""The logits of one tile, and the arguments that every attention kernel takes in bundles.

Bundles are tuples, in this order:
strides   of query, key, value and output: batch, head, row each
slabs     query scores by distance (pointer, batch, head and row stride, row stride of the sheared view),
          the same for key scores, and the key bias
ends      query scores at both saturated ends (pointer; end, batch, head, row stride), the same for keys
places    positions of queries and keys for the bias, then for visibility, documents of both, visible keys
tiles     lists, counts, blocks from one group of heads to the next, from one sequence to the next,
          length of a list
limits    smallest and largest distance told apart, distance of the slabs' first column, window
heads     first sequence, head and query of this launch, heads of the whole call, heads that look left
chance    seed, threshold of a draw below which a probability is dropped, factor of those that are kept
HAS       query slab, key slab, key bias
RULES     visible keys, documents, window, causal, directions of heads
SHAPE     width of queries and keys, the same padded; width of values, padded; queries and keys of a tile
"""

from typing import no_type_check

import triton
import triton.language as tl

from posattn.backends.triton_kernels.tile import (
    GENERAL,
    HIGH,
    LOG2_E,
    LOW,
    NUM_KINDS,
    SHEAR,
    key_terms,
    query_terms,
    visible_pairs,
)

VARYING = (
    "first_batch",
    "first_head",
    "first_row",
    "num_heads",
    "num_left",
    "low",
    "high",
    "first",
    "window",
    "group_stride",
    "sequence_stride",
    "list_length",
    "threshold",
    "query_stride",
    "key_stride",
    "bias_batch",
    "bias_head",
)
"""Numbers that change with lengths and pieces and must not make kernels compile anew.

Triton decides that by argument, not within a tuple, so kernels take them one by one.
"""


@triton.jit
@no_type_check
def starts(tensors, strides, batch, head):
    """Return where one head begins in each of four tensors."""
    first, second, third, fourth = tensors
    return (first + batch * strides[0][0] + head * strides[0][1],
            second + batch * strides[1][0] + head * strides[1][1],
            third + batch * strides[2][0] + head * strides[2][1],
            fourth + batch * strides[3][0] + head * strides[3][1])  # fmt: skip


@triton.jit
@no_type_check
def of_head(slabs, ends, batch, head, bias_batch, bias_head):
    """Return slabs and ends of one head."""
    query_slab, query_batch, query_head, query_pitch, query_shear = slabs[0]
    key_slab, key_batch, key_head, key_pitch, key_shear = slabs[1]
    key_bias = slabs[2]
    query_slab += batch * query_batch + head * query_head
    key_slab += batch * key_batch + head * key_head
    key_bias += batch * bias_batch + head * bias_head
    mine = (query_slab, query_pitch, query_shear, key_slab, key_pitch, key_shear, key_bias)
    query_end, query_kind, query_batch, query_head, query_row = ends[0]
    key_end, key_kind, key_batch, key_head, key_row = ends[1]
    query_end += batch * query_batch + head * query_head
    key_end += batch * key_batch + head * key_head
    return mine, (query_end, query_kind, query_row, key_end, key_kind, key_row)


@triton.jit
@no_type_check
def places_of(places, batch, query_stride, key_stride):
    """Return positions, documents and visibility of one sequence."""
    query_at, key_at, query_seen, key_seen, query_documents, key_documents, key_visible = places
    queries, keys = batch * query_stride, batch * key_stride
    return (query_at + queries, key_at + keys, query_seen + queries, key_seen + keys,
            query_documents + queries, key_documents + keys, key_visible + keys)  # fmt: skip


@triton.jit
@no_type_check
def list_of(tiles, batch, is_left, block, DIRECTIONS: tl.constexpr):
    """Return where the tiles of a block are listed, and where each kind's end is."""
    line = batch * tiles[3] + block
    if DIRECTIONS:
        line += tl.where(is_left, 0, tiles[2])
    return tiles[0] + line * tiles[4], tiles[1] + line * NUM_KINDS


@triton.jit
@no_type_check
def ends_of(end, kind_stride, row_stride, rows, there, KIND: tl.constexpr):
    """Return the scores of tokens at the end that a LOW or HIGH tile lies at, in units of log 2."""
    start = end
    if KIND == HIGH:
        start += kind_stride
    return tl.load(start + rows * row_stride, mask=there, other=0.0) * LOG2_E


@triton.jit
@no_type_check
def tile_logits(query, key, scale, query_start, key_start, rows, columns, slabs, ends, places, limits,
                is_left, sizes, KIND: tl.constexpr, HAS: tl.constexpr, RULES: tl.constexpr,
                SHAPE: tl.constexpr, ACCUMULATE: tl.constexpr, PRECISION: tl.constexpr):  # fmt: skip
    """Return the logits of a tile in units of log 2, minus infinity where hidden."""
    query_at, key_at, query_seen, key_seen, query_documents, key_documents, key_visible = places
    row_there, column_there = rows < sizes[0], columns < sizes[1]
    there = row_there[:, None] & column_there[None, :]
    logits = tl.dot(query, tl.trans(key), input_precision=PRECISION, out_dtype=ACCUMULATE) * scale
    if KIND == HIGH or ((HAS[0] or HAS[1]) and KIND == LOW):
        if HAS[0]:
            logits += ends_of(ends[0], ends[1], ends[2], rows, row_there, KIND)[:, None]
        if HAS[1]:
            logits += ends_of(ends[3], ends[4], ends[5], columns, column_there, KIND)[None, :]
    elif HAS[0] or HAS[1]:
        column, shift = 0, 0
        if KIND == SHEAR:
            shift = tl.load(query_at + query_start) - tl.load(key_at + key_start) - limits[2]
        else:
            at_query = tl.load(query_at + rows, mask=row_there, other=0)
            at_key = tl.load(key_at + columns, mask=column_there, other=0)
            apart = at_query[:, None] - at_key[None, :]
            column = tl.minimum(tl.maximum(apart, limits[0]), limits[1]) - limits[2]
        if HAS[0]:
            terms = query_terms(slabs[0], slabs[1], slabs[2], shift, query_start, column, there, KIND,
                                SHAPE)  # fmt: skip
            logits += terms.to(logits.dtype) * LOG2_E
        if HAS[1]:
            terms = key_terms(slabs[3], slabs[4], slabs[5], shift, key_start, column, there, KIND,
                              SHAPE)  # fmt: skip
            logits += terms.to(logits.dtype) * LOG2_E
    if HAS[2]:
        bias = tl.load(slabs[6] + columns, mask=column_there, other=0.0)
        logits += (bias.to(logits.dtype) * LOG2_E)[None, :]
    if KIND == GENERAL:
        seen = visible_pairs(rows, columns, there, query_seen, key_seen, query_documents, key_documents,
                             key_visible, limits[3], is_left, RULES, sizes)  # fmt: skip
        logits = tl.where(seen, logits, float("-inf"))
    return logits
