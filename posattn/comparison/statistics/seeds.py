"""The bootstrap over seeds: an interval of a mean difference without normality."""

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from scipy.stats import DegenerateDataWarning, bootstrap

from posattn.comparison.statistics.paired import ALPHA

SEED_RESAMPLES = 9999

Method = Literal["BCa", "percentile"]


@dataclass(frozen=True)
class BootstrapInterval:
    """An interval from `resamples` resamples; `method` names how its ends were taken from them.

    `n` is the number of seeds. Below some 5 seeds it covers less often than it says.
    """

    low: float
    high: float
    method: Method
    resamples: int
    n: int


def bootstrap_seeds(
    differences: Sequence[float] | NDArray[np.float64],
    *,
    method: Method = "BCa",
    resamples: int = SEED_RESAMPLES,
    alpha: float = ALPHA,
    seed: int = 0,
) -> BootstrapInterval | None:
    """Return the interval of the mean of paired differences, seeds resampled with replacement.

    `BCa` is bias-corrected and accelerated (Efron 1987, as scipy.stats.bootstrap computes it);
    where it has no value (all resamples on one side), the percentile interval is returned and says
    so. None for fewer than two differences; no width where all are equal.
    """
    values = np.asarray(differences, dtype=np.float64)
    if len(values) < 2:
        return None
    if np.all(values == values[0]):
        only = float(values[0])
        return BootstrapInterval(only, only, "percentile", resamples, len(values))
    with warnings.catch_warnings(), np.errstate(divide="ignore", invalid="ignore"):
        warnings.simplefilter("ignore", DegenerateDataWarning)
        found = bootstrap(
            (values,),
            np.mean,
            n_resamples=resamples,
            vectorized=True,
            confidence_level=1 - alpha,
            method=method,
            random_state=np.random.default_rng(seed),
        ).confidence_interval
    low, high = float(found.low), float(found.high)
    if not (np.isfinite(low) and np.isfinite(high)) and method == "BCa":
        return bootstrap_seeds(
            differences, method="percentile", resamples=resamples, alpha=alpha, seed=seed
        )
    return BootstrapInterval(low, high, method, resamples, len(values))
