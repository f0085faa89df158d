"""Paired statistics over seeds: intervals, exact tests, smallest effects, tests over samples.

All standard deviations are those of a sample (n - 1). A difference is always `first - second`,
seed by seed. What differs and what does not is decided in `verdicts.py`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import sqrt

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq
from scipy.special import nctdtr, stdtr, stdtrit
from scipy.stats import binomtest

ALPHA = 0.05
POWER = 0.8
MAX_EXACT_SEEDS = 16

Values = NDArray[np.float64]


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


def sign_flip_p(differences: Values) -> float:
    """Return the two-sided p of the exact sign-flip test (above 16 seeds: 65,536 random flips)."""
    n = len(differences)
    if n <= MAX_EXACT_SEEDS:
        bits = (np.arange(2**n)[:, None] >> np.arange(n)) & 1
    else:
        bits = np.random.default_rng(0).integers(0, 2, size=(2**MAX_EXACT_SEEDS, n))
        bits[0] = 0
    sums = np.abs((1 - 2 * bits) @ differences)
    observed = abs(float(differences.sum()))
    return float(np.mean(sums >= observed * (1 - 1e-12)))


def smallest_sign_flip_p(n: int) -> float:
    """Return the least two-sided p that n pairs allow: 0.25 for 3, 0.0625 for 5, 0.031 for 6."""
    return float(min(1.0, 2.0 ** (1 - n)))


def detectable_in_sd(n: int, alpha: float, power: float = POWER) -> float:
    """Return the smallest mean difference, in standard deviations, that a paired t test would see.

    It is seen with probability `power`, by a two-sided test at `alpha` over n pairs.
    """
    critical = float(stdtrit(n - 1, 1 - alpha / 2))

    def missing(shift: float) -> float:
        reached = 1.0 - float(nctdtr(n - 1, shift, critical))
        return power - reached

    high: float = critical + 1.0
    while missing(high) > 0:
        high *= 2
    shift = float(brentq(missing, 0.0, high))
    return shift / sqrt(n)


def mcnemar_exact(only_first: int, only_second: int) -> float:
    """Return the exact two-sided McNemar p for the two counts of discordant items."""
    discordant = only_first + only_second
    if discordant == 0:
        return 1.0
    return float(binomtest(only_first, discordant, 0.5).pvalue)


def bootstrap_samples(
    first: Sequence[tuple[Values, Values]],
    second: Sequence[tuple[Values, Values]],
    *,
    resamples: int = 1000,
    seed: int = 0,
) -> tuple[float, float]:
    """Return a 95 % percentile interval of `first - second` over validation samples, seeds held.

    Each item is (score sums, target counts) per sample of one seed, all on the same samples; every
    resample draws the same samples for both arms and all seeds. Spread over seeds is not in it.
    """
    num_samples = len(first[0][0])
    chances = np.full(num_samples, 1.0 / num_samples)
    weights = np.random.default_rng(seed).multinomial(num_samples, chances, size=resamples)
    totals = np.zeros(resamples)
    for (sums_a, targets_a), (sums_b, targets_b) in zip(first, second, strict=True):
        totals += (weights @ sums_a) / (weights @ targets_a)
        totals -= (weights @ sums_b) / (weights @ targets_b)
    low, high = np.percentile(totals / len(first), [2.5, 97.5])
    return float(low), float(high)
