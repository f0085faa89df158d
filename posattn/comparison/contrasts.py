"""Contrasts of a study: the judged differences, with bootstrap intervals and tests over samples."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from posattn.comparison.metrics import Metric
from posattn.comparison.results_schema import (
    Contrast,
    MultiInterval,
    SampleInterval,
    SampleTest,
    SeedInterval,
)
from posattn.comparison.statistics import (
    bootstrap_samples,
    bootstrap_seeds,
    mcnemar_exact,
    multi_bootstrap,
    paired_difference,
)
from posattn.comparison.study_files import Examples
from posattn.comparison.verdicts import Judged, Scores, StudyJudgement

RESAMPLES = 1000
FEW_SEEDS = 5
"""Below this many seeds a bootstrap over seeds covers clearly less often than it says."""

ExamplesByRun = Mapping[tuple[str, int], Examples | None]
ExamplePairs = list[tuple[int, Examples, Examples]]
Values = NDArray[np.float64]
ExampleSums = list[tuple[Values, Values]]


@dataclass(frozen=True)
class _Evidence:
    """What the differences are computed from: scores by arm and seed, and sums by sample."""

    metric: Metric
    scores: Scores
    examples: ExamplesByRun


def judged_contrasts(
    judged: StudyJudgement, metric: Metric, scores: Scores, examples: ExamplesByRun
) -> list[Contrast]:
    """Return all pairs of arms on the primary score.

    Those with the baseline, and those named beforehand, have bootstrap intervals beside the t
    interval and tests over samples.
    """
    evidence = _Evidence(metric, scores, examples)
    with_baseline = [_contrast(item, "baseline", evidence, full=True) for item in judged.contrasts]
    pairs = [_contrast(item, "pairs", evidence, full=item.named) for item in judged.pairs]
    return with_baseline + pairs


def _contrast(
    item: Judged, family: Literal["baseline", "pairs"], evidence: _Evidence, *, full: bool
) -> Contrast:
    metric = evidence.metric
    pairs = _example_pairs(item, evidence.examples) if full else []
    summable = pairs if _sums_of(metric) and _same_samples(pairs) else []
    return Contrast(
        metric=metric.name,
        family=family,
        first=item.first,
        second=item.second,
        difference=item.difference,
        judgement=item.judgement,
        named=item.named,
        seed_interval=_seed_interval(item, evidence.scores) if full else None,
        multi_interval=_multi_interval(summable, metric),
        sample_interval=_sample_interval(summable, metric),
        sample_tests=[_sample_test(seed, a, b) for seed, a, b in pairs],
    )


def descriptive_contrasts(metric: Metric, scores: Scores, baseline: str) -> list[Contrast]:
    """Return the differences from the baseline on a score that is not judged."""
    return [
        Contrast(
            metric=metric.name,
            family="descriptive",
            first=name,
            second=baseline,
            difference=paired_difference(scores[name], scores[baseline]),
            judgement=None,
        )
        for name in scores
        if name != baseline
    ]


def _sums_of(metric: Metric) -> str | None:
    """Return which sums of examples.npz this score is the mean of, if it is any."""
    known = {("validation", "loss"): "loss_sum", ("validation", "accuracy"): "correct"}
    return known.get((metric.section, metric.key))


def _example_pairs(item: Judged, examples: ExamplesByRun) -> ExamplePairs:
    """Return, by seed, the per-sample sums of both arms where they are of the same samples."""
    pairs = []
    for arm, seed in examples:
        first, second = examples.get((item.first, seed)), examples.get((item.second, seed))
        if arm != item.first or first is None or second is None:
            continue
        same = np.array_equal(first.sample_ids, second.sample_ids)
        if same and np.array_equal(first.targets, second.targets):
            pairs.append((seed, first, second))
    return pairs


def _same_samples(pairs: ExamplePairs) -> bool:
    """Return whether all seeds are of the same samples too, so that these can be drawn jointly."""
    return all(np.array_equal(a.sample_ids, pairs[0][1].sample_ids) for _, a, _ in pairs)


def _sums(runs: list[Examples], metric: Metric) -> ExampleSums:
    """Return sums and target counts of each run of one arm."""
    name = _sums_of(metric) or ""
    return [(getattr(run, name), run.targets) for run in runs]


def _both(pairs: ExamplePairs, metric: Metric) -> tuple[ExampleSums, ExampleSums]:
    return _sums([a for _, a, _ in pairs], metric), _sums([b for _, _, b in pairs], metric)


def _seed_interval(item: Judged, scores: Scores) -> SeedInterval | None:
    first, second = scores[item.first], scores[item.second]
    seeds = sorted(first.keys() & second.keys())
    found = bootstrap_seeds([first[seed] - second[seed] for seed in seeds])
    if found is None:
        return None
    return SeedInterval(
        seeds=found.n,
        method=found.method,
        resamples=found.resamples,
        low=found.low,
        high=found.high,
        reason=_too_few(found.n),
    )


def _multi_interval(pairs: ExamplePairs, metric: Metric) -> MultiInterval | None:
    if len(pairs) < 2:
        return None
    first, second = _both(pairs, metric)
    low, high = multi_bootstrap(first, second, paired_seeds=True, resamples=RESAMPLES)
    return MultiInterval(
        seeds=len(pairs),
        samples=len(pairs[0][1].sample_ids),
        resamples=RESAMPLES,
        low=low,
        high=high,
        reason=_too_few(len(pairs)),
    )


def _too_few(seeds: int) -> str | None:
    if seeds >= FEW_SEEDS:
        return None
    return f"{seeds} seeds: a bootstrap over fewer than {FEW_SEEDS} covers less often than it says"


def _sample_interval(pairs: ExamplePairs, metric: Metric) -> SampleInterval | None:
    if not pairs:
        return None
    first, second = _both(pairs, metric)
    low, high = bootstrap_samples(first, second, resamples=RESAMPLES)
    samples = len(pairs[0][1].sample_ids)
    return SampleInterval(
        seeds=len(pairs), samples=samples, resamples=RESAMPLES, low=low, high=high
    )


def _sample_test(seed: int, first: Examples, second: Examples) -> SampleTest:
    more = int(np.sum(first.correct > second.correct))
    fewer = int(np.sum(first.correct < second.correct))
    p = mcnemar_exact(more, fewer)
    return SampleTest(seed=seed, samples=len(first.sample_ids), more=more, fewer=fewer, p=p)
