"""Contrasts of a study: the judged differences, with what samples say beside them."""

from collections.abc import Mapping
from typing import Literal

import numpy as np

from posattn.comparison.metrics import Metric
from posattn.comparison.results_schema import Contrast, SampleInterval, SampleTest
from posattn.comparison.statistics import bootstrap_samples, mcnemar_exact, paired_difference
from posattn.comparison.study_files import Examples
from posattn.comparison.verdicts import Judged, Scores, StudyJudgement

RESAMPLES = 1000

ExamplesByRun = Mapping[tuple[str, int], Examples | None]


def judged_contrasts(
    judged: StudyJudgement, metric: Metric, examples: ExamplesByRun
) -> list[Contrast]:
    """Return all pairs of arms on the primary score; those with the baseline also by samples."""
    with_baseline = [_contrast(item, metric, "baseline", examples) for item in judged.contrasts]
    return with_baseline + [_contrast(item, metric, "pairs", {}) for item in judged.pairs]


def _contrast(
    item: Judged,
    metric: Metric,
    family: Literal["baseline", "pairs"],
    examples: ExamplesByRun,
) -> Contrast:
    pairs = _example_pairs(item, examples)
    return Contrast(
        metric=metric.name,
        family=family,
        first=item.first,
        second=item.second,
        difference=item.difference,
        judgement=item.judgement,
        sample_interval=_sample_interval(pairs) if metric.key == "loss" else None,
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


def _example_pairs(item: Judged, examples: ExamplesByRun) -> list[tuple[int, Examples, Examples]]:
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


def _sample_interval(pairs: list[tuple[int, Examples, Examples]]) -> SampleInterval | None:
    if not pairs or any(len(a.sample_ids) != len(pairs[0][1].sample_ids) for _, a, _ in pairs):
        return None
    low, high = bootstrap_samples(
        [(a.loss_sum, a.targets) for _, a, _ in pairs],
        [(b.loss_sum, b.targets) for _, _, b in pairs],
        resamples=RESAMPLES,
    )
    samples = len(pairs[0][1].sample_ids)
    return SampleInterval(
        seeds=len(pairs), samples=samples, resamples=RESAMPLES, low=low, high=high
    )


def _sample_test(seed: int, first: Examples, second: Examples) -> SampleTest:
    more = int(np.sum(first.correct > second.correct))
    fewer = int(np.sum(first.correct < second.correct))
    p = mcnemar_exact(more, fewer)
    return SampleTest(seed=seed, samples=len(first.sample_ids), more=more, fewer=fewer, p=p)
