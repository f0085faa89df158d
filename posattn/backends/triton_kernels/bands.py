"""Where the gradient of a tile of logits goes in the gradient of scores by distance."""

from typing import no_type_check

import triton
import triton.language as tl

from posattn.backends.triton_kernels.tile import ALIGNMENT, HIGH, LOW, SHEAR


@triton.jit
@no_type_check
def split(of_logits, at_query, at_key, limits):
    """Return what lies beyond each end, which pairs lie between, and the column of each."""
    apart = at_query[:, None] - at_key[None, :]
    is_low = apart <= limits[0]
    is_high = (apart >= limits[1]) & (apart > limits[0])
    below = tl.where(is_low, of_logits, 0.0)
    above = tl.where(is_high, of_logits, 0.0)
    return below, above, (apart > limits[0]) & (apart < limits[1]), apart - limits[2]


@triton.jit
@no_type_check
def write_by_query(band, pitch, shear, of_logits, query_start, key_start, rows, columns, sizes,
                   places, limits, at_low, at_high, KIND: tl.constexpr, SHAPE: tl.constexpr):  # fmt: skip
    """Write the tile into the rows of its queries; return the sums beyond both ends, with this tile's."""
    i = tl.arange(0, SHAPE[4])[:, None]
    if KIND == LOW:
        at_low += tl.sum(of_logits, 1)
    elif KIND == HIGH:
        at_high += tl.sum(of_logits, 1)
    elif KIND == SHEAR:
        run = tl.arange(0, SHAPE[5])[None, :]
        shift = tl.load(places[0] + query_start) - tl.load(places[1] + key_start) - limits[2]
        shift = tl.multiple_of(shift - (SHAPE[5] - 1), ALIGNMENT)
        tl.store(band + shift + i * shear + run, of_logits.to(band.dtype.element_ty))
    else:
        at_query = tl.load(places[0] + rows, mask=rows < sizes[0], other=0)
        at_key = tl.load(places[1] + columns, mask=columns < sizes[1], other=0)
        below, above, between, column = split(of_logits, at_query, at_key, limits)
        at_low += tl.sum(below, 1)
        at_high += tl.sum(above, 1)
        seen = between & (of_logits != 0)  # the band starts as zeros
        tl.store(band + i * pitch + column, of_logits.to(band.dtype.element_ty), mask=seen)
    return at_low, at_high


@triton.jit
@no_type_check
def write_by_key(band, pitch, shear, of_logits, query_start, key_start, rows, columns, sizes,
                 places, limits, at_low, at_high, of_padding, KIND: tl.constexpr,
                 SHAPE: tl.constexpr):  # fmt: skip
    """Write the tile into the rows of its keys; return the sums beyond both ends and of padding."""
    j = SHAPE[5] - 1 - tl.arange(0, SHAPE[5])
    if KIND == LOW:
        at_low += tl.sum(of_logits, 0)
    elif KIND == HIGH:
        at_high += tl.sum(of_logits, 0)
    elif KIND == SHEAR:
        run = tl.arange(0, SHAPE[4])[None, :]
        shift = tl.load(places[0] + query_start) - tl.load(places[1] + key_start) - limits[2]
        shift = tl.multiple_of(shift + 1, ALIGNMENT)
        turned = tl.trans(of_logits.to(band.dtype.element_ty))
        tl.store(band + shift + j[:, None] * shear + run, turned)
    else:
        at_query = tl.load(places[0] + rows, mask=rows < sizes[0], other=0)
        at_key = tl.load(places[1] + columns, mask=columns < sizes[1], other=0)
        is_token = (at_query >= 0)[:, None]
        of_padding += tl.sum(tl.where(is_token, 0.0, of_logits), 0)
        of_tokens = tl.where(is_token, of_logits, 0.0)
        below, above, between, column = split(of_tokens, at_query, at_key, limits)
        at_low += tl.sum(below, 0)
        at_high += tl.sum(above, 0)
        seen = between & (of_tokens != 0)  # the band starts as zeros
        tl.store(
            band + j[None, :] * pitch + column + 1, of_tokens.to(band.dtype.element_ty), mask=seen
        )
    return at_low, at_high, of_padding


@triton.jit
@no_type_check
def add_padding(band, pitch, of_padding, columns, there, places, limits, at_low, at_high,
                SHAPE: tl.constexpr):  # fmt: skip
    """Add what padding queries (position -1) sum up to; return the sums beyond both ends with it."""
    apart = -1 - tl.load(places[1] + columns, mask=there, other=0)
    is_low = apart <= limits[0]
    is_high = (apart >= limits[1]) & (apart > limits[0])
    adds = there & (of_padding != 0) & (apart > limits[0]) & (apart < limits[1])
    tl.debug_barrier()  # other threads of this program may have written the cell
    cell = band + (SHAPE[5] - 1 - tl.arange(0, SHAPE[5])) * pitch + apart - limits[2] + 1
    sums = tl.load(cell, mask=adds, other=0.0).to(of_padding.dtype) + of_padding
    tl.store(cell, sums.to(band.dtype.element_ty), mask=adds)
    return at_low + tl.where(is_low, of_padding, 0.0), at_high + tl.where(is_high, of_padding, 0.0)


@triton.jit
@no_type_check
def write_ends(band, pitch, local, there, at_low, at_high):
    """Write the sums beyond both ends into the first and the last column of each row."""
    tl.store(band + local * pitch, at_low.to(band.dtype.element_ty), mask=there)
    tl.store(band + local * pitch + pitch - 1, at_high.to(band.dtype.element_ty), mask=there)
