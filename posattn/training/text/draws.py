"""Counter-based random numbers: a draw is a pure function of its key and its counter.

A key is folded from plain integers (a purpose, a seed, an epoch, a sample id). The stream of a key
is SplitMix64 (Steele, Lea and Flood, 2014), read at any counter without reading what comes before,
so workers, batch sizes, accumulation, devices and resumption cannot change a draw. Integers only
until the last step, hence equal on every machine and in every numpy version.
"""

from enum import IntEnum

import numpy as np
from numpy.typing import NDArray

Counters = NDArray[np.int64]
Keys = NDArray[np.uint64]

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_FIRST = np.uint64(0xBF58476D1CE4E5B9)
_SECOND = np.uint64(0x94D049BB133111EB)
_WORD = (1 << 64) - 1


class Purpose(IntEnum):
    """What a draw is for; two purposes never share a stream."""

    SELECTION = 1
    CLASS = 2
    REPLACEMENT = 3
    TRAINING_MASKS = 4
    VALIDATION_MASKS = 5
    ORDER = 6
    LANES = 7
    DIVISION = 8
    SYMBOLS = 9
    PLACES = 10
    SIZES = 11
    CONTENT = 12


def fold(*parts: int | NDArray[np.integer]) -> Keys:
    """Return one key per row from integers and rows of integers; at least one key."""
    folded = np.zeros(1, dtype=np.uint64)
    for part in parts:
        if isinstance(part, np.ndarray):
            word = part.astype(np.int64).view(np.uint64)
        else:
            word = np.array([int(part) & _WORD], dtype=np.uint64)
        folded = _mix((folded ^ word) + _GOLDEN)
    return folded


def words(keys: Keys, counters: Counters) -> Keys:
    """Return 64 random bits per counter; `keys` and `counters` broadcast."""
    steps = counters.astype(np.int64).view(np.uint64) + np.uint64(1)
    return _mix(keys + steps * _GOLDEN)


def uniforms(keys: Keys, counters: Counters) -> NDArray[np.float64]:
    """Return numbers in [0, 1) with 53 random bits; `keys` and `counters` broadcast."""
    return (words(keys, counters) >> np.uint64(11)).astype(np.float64) * 2.0**-53


def permutation(count: int, *parts: int) -> NDArray[np.int64]:
    """Return a permutation of `count` numbers that depends on `parts` only."""
    keys = words(fold(*parts), np.arange(count, dtype=np.int64))
    return np.argsort(keys, kind="stable").astype(np.int64)


def _mix(state: Keys) -> Keys:
    state = (state ^ (state >> np.uint64(30))) * _FIRST
    state = (state ^ (state >> np.uint64(27))) * _SECOND
    return state ^ (state >> np.uint64(31))
