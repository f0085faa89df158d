"""How often the best guess is right when symbols are known, and not where they are."""

import math
from functools import cache

import numpy as np


@cache
def most_frequent(count: int, symbols: int) -> float:
    """Return the expected number of the most frequent of `symbols` in `count` independent draws.

    E max = sum over m >= 0 of P(max > m). Counts are independent Poisson variables of mean
    count / symbols, given that they sum to `count`; so P(max <= m) is the chance that truncated ones
    sum to it, over that of one Poisson variable of mean `count`.
    """
    weights = np.array([_poisson(number, count / symbols) for number in range(count + 1)])
    whole = _poisson(count, float(count))
    expected = 0.0
    for most in range(count):
        held = np.where(np.arange(count + 1) <= most, weights, 0.0)
        total = np.array([1.0])
        for _ in range(symbols):
            total = np.convolve(total, held)[: count + 1]
        at_count = float(total[count]) if len(total) > count else 0.0
        expected += 1.0 - at_count / whole
    return expected


def _poisson(number: int, mean: float) -> float:
    return math.exp(number * math.log(mean) - mean - math.lgamma(number + 1))


def one_of_two(symbols: int) -> float:
    """Return how often one of two independent symbols, not known which, is guessed right."""
    return 0.5 + 0.5 / symbols
