"""Which tiles a block has to visit, by kind: wholly hidden tiles are in no list."""

from typing import no_type_check

import triton
import triton.language as tl

from posattn.backends.triton_kernels.tile import (
    ALIGNMENT,
    GENERAL,
    HIGH,
    LOW,
    NUM_KINDS,
    SHEAR,
)

NUM_BOUNDS = tl.constexpr(10)
FAR = tl.constexpr(2**30)


@triton.jit(do_not_specialize=("length",))
@no_type_check
def block_bounds(at, seen, documents, visible, bounds, length, HAS_DOCUMENTS: tl.constexpr,
                 HAS_VISIBLE: tl.constexpr, BLOCK: tl.constexpr):  # fmt: skip
    """Write what is common to a block of tokens: where it starts, its extremes, whether all count."""
    block, batch = tl.program_id(0), tl.program_id(1)
    tokens = block * BLOCK + tl.arange(0, BLOCK)
    there = tokens < length
    counts = there
    if HAS_VISIBLE:
        counts = counts & (tl.load(visible + batch * length + tokens, mask=there, other=0) != 0)
    position = tl.load(at + batch * length + tokens, mask=there, other=0)
    place = tl.load(seen + batch * length + tokens, mask=there, other=0)
    first = tl.load(at + batch * length + block * BLOCK)
    runs = tl.min((there & (position == first + tl.arange(0, BLOCK))).to(tl.int32), 0)
    start = bounds + (batch * tl.num_programs(0) + block) * NUM_BOUNDS
    tl.store(start, first)
    tl.store(start + 1, tl.min(tl.where(counts, position, FAR), 0))
    tl.store(start + 2, tl.max(tl.where(counts, position, -FAR), 0))
    tl.store(start + 3, tl.min(tl.where(counts, place, FAR), 0))
    tl.store(start + 4, tl.max(tl.where(counts, place, -FAR), 0))
    if HAS_DOCUMENTS:
        document = tl.load(documents + batch * length + tokens, mask=there, other=0)
        tl.store(start + 5, tl.min(tl.where(counts, document, FAR), 0))
        tl.store(start + 6, tl.max(tl.where(counts, document, -FAR), 0))
    tl.store(start + 7, runs)
    tl.store(start + 8, tl.max(counts.to(tl.int32), 0))
    tl.store(start + 9, tl.min(counts.to(tl.int32), 0))


@triton.jit(
    do_not_specialize=("num_own", "num_other", "num_batches", "low", "high", "first", "window")
)
@no_type_check
def tile_lists(query_bounds, key_bounds, lists, counts, num_own, num_other, num_batches, low, high, first,
               window, HAS_BIAS: tl.constexpr, RULES: tl.constexpr, BY_KEY: tl.constexpr,
               OTHERS: tl.constexpr):  # fmt: skip
    """Write, for a block of queries (or of keys), its tiles ordered by kind, and where each kind ends."""
    own, line = tl.program_id(0), tl.program_id(1)
    group, batch = line // num_batches, line % num_batches
    other = tl.arange(0, OTHERS)
    there = other < num_other
    own_start = (batch * num_own + own) * NUM_BOUNDS
    other_start = (batch * num_other + other) * NUM_BOUNDS
    if BY_KEY:
        queries, keys = query_bounds + other_start, key_bounds + own_start + other * 0
    else:
        queries, keys = query_bounds + own_start + other * 0, key_bounds + other_start
    some = there & (tl.load(keys + 8, mask=there, other=0) != 0)
    some = some & (tl.load(queries + 8, mask=there, other=0) != 0)
    full = some & (tl.load(keys + 9, mask=there, other=0) != 0)
    if RULES[2] or RULES[3] or RULES[4]:
        least = tl.load(queries + 3, mask=some, other=0) - tl.load(keys + 4, mask=some, other=0)
        most = tl.load(queries + 4, mask=some, other=0) - tl.load(keys + 3, mask=some, other=0)
        if RULES[2]:
            some = some & (least <= window) & (most >= -window)
            full = full & (least >= -window) & (most <= window)
        if RULES[3]:
            some = some & (most >= 0)
            full = full & (least >= 0)
        if RULES[4]:
            some = some & tl.where(group == 0, most >= 0, least <= 0)
            full = full & tl.where(group == 0, least >= 0, most <= 0)
    if RULES[1]:
        query_low, query_high = tl.load(queries + 5, mask=some), tl.load(queries + 6, mask=some)
        key_low, key_high = tl.load(keys + 5, mask=some), tl.load(keys + 6, mask=some)
        some = some & (query_high >= key_low) & (query_low <= key_high)
        full = full & (query_low == query_high) & (key_low == key_high) & (query_low == key_low)
    kind = tl.where(full, LOW, GENERAL)
    if HAS_BIAS:
        least = tl.load(queries + 1, mask=some, other=0) - tl.load(keys + 2, mask=some, other=0)
        most = tl.load(queries + 2, mask=some, other=0) - tl.load(keys + 1, mask=some, other=0)
        runs = tl.load(queries + 7, mask=some, other=0) & tl.load(keys + 7, mask=some, other=0)
        apart = tl.load(queries, mask=some, other=0) - tl.load(keys, mask=some, other=0)
        shears = (runs != 0) & ((apart + 1 - first) % ALIGNMENT == 0)
        band = tl.where(shears, SHEAR, GENERAL)
        kind = tl.where(
            full, tl.where(most <= low, LOW, tl.where(least >= high, HIGH, band)), GENERAL
        )
    start = (line * num_own + own).to(tl.int64)
    end = 0
    for which in tl.static_range(NUM_KINDS):
        chosen = some & (kind == which)
        place = tl.cumsum(chosen.to(tl.int32), 0) - 1 + end
        tl.store(lists + start * num_other + place, other, mask=chosen)
        end += tl.sum(chosen.to(tl.int32), 0)
        tl.store(counts + start * NUM_KINDS + which, end)
