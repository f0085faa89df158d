"""The smallest effect that a number of seeds can see."""

from functools import cache
from math import sqrt

from scipy.optimize import brentq
from scipy.special import nctdtr, stdtrit

POWER = 0.8


@cache
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
