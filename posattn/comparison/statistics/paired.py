"""Paired differences over seeds: mean, spread, t interval, and the exact test beside it.

All standard deviations are those of a sample (n - 1). A difference is always `first - second`,
seed by seed.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import stdtr, stdtrit

from posattn.comparison.statistics.sign_flips import sign_flip_p, smallest_sign_flip_p

ALPHA = 0.05


@dataclass(frozen=True)
class Summary:
    """Mean and sample standard deviation of n values; null where n is too small."""

    n: int
    mean: float | None
    sd: float | None


@dataclass(frozen=True)
class PairedDifference:
    """The differences of two arms over their common seeds.

    `low` and `high` bound the mean at 95 % by the paired t; `p_exact` is the two-sided sign-flip p,
    `smallest_p` the least that this number of seeds allows. `reason` says why numbers are null.
    """

    n: int
    mean: float | None = None
    sd: float | None = None
    low: float | None = None
    high: float | None = None
    p_t: float | None = None
    p_exact: float | None = None
    smallest_p: float | None = None
    reason: str | None = None


def summarize(values: Sequence[float]) -> Summary:
    """Return n, mean and sample standard deviation (n - 1)."""
    array = np.asarray(values, dtype=np.float64)
    mean = float(array.mean()) if len(array) else None
    return Summary(len(array), mean, sample_sd(values))


def sample_sd(values: Sequence[float]) -> float | None:
    """Return the sample standard deviation (n - 1), or None for fewer than two values."""
    if len(values) < 2:
        return None
    return float(np.std(np.asarray(values, dtype=np.float64), ddof=1))


def paired_difference(first: Mapping[int, float], second: Mapping[int, float]) -> PairedDifference:
    """Return `first - second` over the seeds that both have; scores are given by seed."""
    seeds = sorted(first.keys() & second.keys())
    values = np.array([first[seed] - second[seed] for seed in seeds], dtype=np.float64)
    n = len(values)
    if n == 0:
        return PairedDifference(0, reason="no seed finished in both arms")
    mean = float(values.mean())
    if n == 1:
        reason = "one common seed: no spread, so no interval and no test"
        return PairedDifference(1, mean, reason=reason)
    sd = float(np.std(values, ddof=1))
    exact, smallest = sign_flip_p(values), smallest_sign_flip_p(n)
    if sd == 0.0:
        p_t = 1.0 if mean == 0.0 else None
        reason = "all differences are equal: no spread, so the t interval has no width"
        return PairedDifference(n, mean, sd, mean, mean, p_t, exact, smallest, reason)
    low, high = t_interval(mean, sd, n, ALPHA)
    statistic = abs(mean) / (sd / n**0.5)
    p_t = float(2 * stdtr(n - 1, -statistic))
    return PairedDifference(n, mean, sd, low, high, p_t, exact, smallest)


def t_interval(mean: float, sd: float, n: int, alpha: float) -> tuple[float, float]:
    """Return the two-sided interval of the mean at level `1 - alpha`, assuming normal values."""
    half = float(stdtrit(n - 1, 1 - alpha / 2)) * sd / n**0.5
    return mean - half, mean + half
