"""Aggregates over tasks and seeds, as Agarwal et al. 2021 advise (arXiv:2108.13264, `rliable`).

Scores are given as one sequence of runs per task; tasks may have different numbers of runs.
"""

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.stats import trim_mean

from posattn.comparison.statistics.paired import ALPHA

QUARTER = 0.25

Values = NDArray[np.float64]
TaskScores = Sequence[Sequence[float]] | Sequence[Values] | NDArray[np.float64]
"""`scores[task][run]`."""


def interquartile_mean(scores: TaskScores) -> float:
    """Return the mean of the middle half of all runs of all tasks, pooled.

    A quarter of the runs is cut off at each end (a whole number of them, rounded down), so a few
    failed seeds or one easy task do not decide it. Raises `ValueError` where there is no score.
    """
    return float(trim_mean(np.concatenate(_by_task(scores)), QUARTER))


def stratified_bootstrap(
    statistic: Callable[..., float],
    *groups: TaskScores,
    paired: bool = False,
    resamples: int = 2000,
    alpha: float = ALPHA,
    seed: int = 0,
) -> tuple[float, float]:
    """Return a percentile interval of `statistic(*groups)`, runs resampled within each task.

    Tasks are held: they are those of the study. With `paired`, a resample draws the same runs for
    all groups (arms that share seeds); otherwise each group is drawn on its own. The statistic gets
    one list of arrays, by task, per group. Raises `ValueError` if paired groups do not match.
    """
    tasks = [_by_task(group) for group in groups]
    sizes = [[len(runs) for runs in group] for group in tasks]
    if paired and any(size != sizes[0] for size in sizes):
        raise ValueError(f"paired groups need the same runs in each task; their numbers: {sizes}")
    random = np.random.default_rng(seed)
    found = np.empty(resamples)
    for index in range(resamples):
        drawn = _draw(random, sizes[0])
        resampled = []
        for number, (group, size) in enumerate(zip(tasks, sizes, strict=True)):
            if number and not paired:
                drawn = _draw(random, size)
            resampled.append([runs[rows] for runs, rows in zip(group, drawn, strict=True)])
        found[index] = statistic(*resampled)
    low, high = np.quantile(found, [alpha / 2, 1 - alpha / 2])
    return float(low), float(high)


def probability_of_improvement(first: TaskScores, second: TaskScores) -> float:
    """Return P(X > Y) for a run of `first` and one of `second`, averaged over tasks.

    Ties count a half; in each task it is the Mann-Whitney statistic over all pairs of runs. Where
    lower is better, exchange the two. Raises `ValueError` unless both have the same tasks.
    """
    one, other = _by_task(first), _by_task(second)
    if len(one) != len(other):
        raise ValueError(f"{len(one)} tasks against {len(other)}: both need the same tasks")
    chances = [
        np.mean((x[:, None] > y) + 0.5 * (x[:, None] == y)) for x, y in zip(one, other, strict=True)
    ]
    return float(np.mean(chances))


def performance_profile(scores: TaskScores, thresholds: ArrayLike) -> Values:
    """Return, by threshold, the share of runs with a higher score, averaged over tasks."""
    limits = np.asarray(thresholds, dtype=np.float64)
    shares = [np.mean(runs[:, None] > limits, axis=0) for runs in _by_task(scores)]
    return np.asarray(np.mean(shares, axis=0), dtype=np.float64)


def _by_task(scores: TaskScores) -> list[Values]:
    tasks = [np.asarray(runs, dtype=np.float64) for runs in scores]
    if not tasks or any(runs.ndim != 1 or len(runs) == 0 for runs in tasks):
        raise ValueError("scores are given by task and run, at least one run in every task")
    if any(not np.all(np.isfinite(runs)) for runs in tasks):
        raise ValueError(
            "a run without a score is left out and counted apart; found NaN or infinity"
        )
    return tasks


def _draw(random: np.random.Generator, sizes: Sequence[int]) -> list[NDArray[np.intp]]:
    return [random.integers(0, size, size=size) for size in sizes]
