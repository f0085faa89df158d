"""Bootstraps over saved per-example sums: with seeds held, and over seeds and examples together.

What is resampled is the scope of the claim. With seeds held, an interval is about these trained
models on other text; with seeds resampled too, it is about other training runs on other text.
"""

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from posattn.comparison.statistics.paired import ALPHA

BLOCK = 100
"""Resamples drawn at a time, so that memory stays small."""

Values = NDArray[np.float64]
ExampleSums = Sequence[tuple[Values, Values]]
"""By seed: score sums and target counts of every example, all seeds on the same examples."""


def bootstrap_samples(
    first: ExampleSums, second: ExampleSums, *, resamples: int = 1000, seed: int = 0
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


def multi_bootstrap(
    first: ExampleSums,
    second: ExampleSums,
    *,
    paired_seeds: bool = True,
    resamples: int = 1000,
    alpha: float = ALPHA,
    seed: int = 0,
) -> tuple[float, float]:
    """Return a percentile interval of `first - second` over seeds and examples at `1 - alpha`.

    The multi-bootstrap (Sellam et al. 2022, "The MultiBERTs", arXiv:2106.16163). Every resample
    draws examples, the same for all runs of both arms, and seeds: with `paired_seeds` the same for
    both arms, otherwise for each arm on its own. A run's score in a resample is its total over its
    targets, an arm's score the mean over the drawn runs. Raises `ValueError` where the two arms do
    not have the same examples, or paired arms not the same number of seeds.
    """
    _check(first, second, paired_seeds=paired_seeds)
    targets = np.sum([counts for _, counts in (*first, *second)], axis=0)
    used = np.flatnonzero(targets > 0)
    random = np.random.default_rng(seed)
    first_runs = _draw_seeds(random, len(first), resamples)
    second_runs = first_runs if paired_seeds else _draw_seeds(random, len(second), resamples)
    differences = np.empty(resamples)
    start = 0
    for weights in _draw_examples(random, len(used), resamples):
        rows = slice(start, start + len(weights))
        arms = ((first, first_runs[rows]), (second, second_runs[rows]))
        one, other = (np.sum(_scores(weights, arm, used) * runs, axis=1) for arm, runs in arms)
        differences[rows] = one - other
        start += len(weights)
    low, high = np.quantile(differences, [alpha / 2, 1 - alpha / 2])
    return float(low), float(high)


def _check(first: ExampleSums, second: ExampleSums, *, paired_seeds: bool) -> None:
    sizes = {len(array) for run in (*first, *second) for array in run}
    if not first or not second or len(sizes) != 1:
        raise ValueError(
            f"the runs have {sorted(sizes)} examples; all runs of both arms need the same examples"
        )
    if paired_seeds and len(first) != len(second):
        raise ValueError(f"paired seeds: {len(first)} runs of one arm, {len(second)} of the other")
    if all(not np.any(counts > 0) for _, counts in (*first, *second)):
        raise ValueError("no example has a target, so there is no score to resample")


def _draw_seeds(random: np.random.Generator, n: int, resamples: int) -> Values:
    """Return the share of each run in each resample."""
    return random.multinomial(n, np.full(n, 1.0 / n), size=resamples) / n


def _draw_examples(random: np.random.Generator, n: int, resamples: int) -> Iterator[Values]:
    """Yield blocks of resamples: how often each example was drawn."""
    for start in range(0, resamples, BLOCK):
        rows = min(BLOCK, resamples - start)
        drawn = random.integers(0, n, size=(rows, n)) + n * np.arange(rows)[:, None]
        yield np.bincount(drawn.ravel(), minlength=rows * n).reshape(rows, n).astype(np.float64)


def _scores(weights: Values, runs: ExampleSums, used: NDArray[np.intp]) -> Values:
    """Return, by resample and run, the total score over the total of targets."""
    sums = np.stack([run[0][used] for run in runs], axis=1)
    counts = np.stack([run[1][used] for run in runs], axis=1)
    return (weights @ sums) / (weights @ counts)
