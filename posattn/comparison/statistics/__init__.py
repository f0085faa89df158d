"""Statistics over seeds, examples and tasks: intervals, exact tests, smallest effects, aggregates.

What differs and what does not is decided in `verdicts.py`.
"""

from posattn.comparison.statistics.corrections import holm, holm_alphas
from posattn.comparison.statistics.counts import fraction_interval, mcnemar_exact
from posattn.comparison.statistics.examples import bootstrap_samples, multi_bootstrap
from posattn.comparison.statistics.paired import (
    ALPHA,
    PairedDifference,
    Summary,
    paired_difference,
    sample_sd,
    summarize,
    t_interval,
)
from posattn.comparison.statistics.power import POWER, detectable_in_sd
from posattn.comparison.statistics.seeds import BootstrapInterval, bootstrap_seeds
from posattn.comparison.statistics.sign_flips import (
    MAX_EXACT_SEEDS,
    sign_flip_p,
    smallest_sign_flip_p,
)
from posattn.comparison.statistics.tasks import (
    interquartile_mean,
    performance_profile,
    probability_of_improvement,
    stratified_bootstrap,
)

__all__ = [
    "ALPHA",
    "BootstrapInterval",
    "MAX_EXACT_SEEDS",
    "POWER",
    "PairedDifference",
    "Summary",
    "bootstrap_samples",
    "bootstrap_seeds",
    "detectable_in_sd",
    "fraction_interval",
    "holm",
    "holm_alphas",
    "interquartile_mean",
    "mcnemar_exact",
    "multi_bootstrap",
    "paired_difference",
    "performance_profile",
    "probability_of_improvement",
    "sample_sd",
    "sign_flip_p",
    "smallest_sign_flip_p",
    "stratified_bootstrap",
    "summarize",
    "t_interval",
]
