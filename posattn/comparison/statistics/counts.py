"""Exact tests and intervals of counts: McNemar's test, and the share of runs that solved a task."""

from scipy.stats import binomtest

from posattn.comparison.statistics.paired import ALPHA


def mcnemar_exact(only_first: int, only_second: int) -> float:
    """Return the exact two-sided McNemar p for the two counts of discordant items."""
    discordant = only_first + only_second
    if discordant == 0:
        return 1.0
    return float(binomtest(only_first, discordant, 0.5).pvalue)


def fraction_interval(successes: int, n: int, alpha: float = ALPHA) -> tuple[float, float]:
    """Return the exact interval of a share, `successes` of `n`, at `1 - alpha`.

    Clopper and Pearson 1934: it covers at least what it says, whatever the true share. Of no runs
    nothing is known: (0, 1). Raises `ValueError` unless 0 <= successes <= n.
    """
    if not 0 <= successes <= n:
        raise ValueError(f"{successes} successes of {n} runs: expected 0 <= successes <= n")
    if n == 0:
        return 0.0, 1.0
    found = binomtest(successes, n).proportion_ci(1 - alpha, method="exact")
    return float(found.low), float(found.high)
