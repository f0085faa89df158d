"""Aggregates over tasks: against loops, closed forms, and the definitions of `rliable`."""

import numpy as np
import pytest

from posattn.comparison.statistics import (
    interquartile_mean,
    performance_profile,
    probability_of_improvement,
    stratified_bootstrap,
)

RANDOM = np.random.default_rng(0)
FIRST = RANDOM.normal(0.6, 0.2, (3, 8)).round(2)
SECOND = RANDOM.normal(0.5, 0.2, (3, 8)).round(2)


def test_the_interquartile_mean_is_that_of_the_middle_half_of_all_runs():
    pooled = sorted(FIRST.ravel())
    assert interquartile_mean(FIRST) == pytest.approx(np.mean(pooled[6:18]))


def test_a_quarter_that_is_no_whole_number_is_rounded_down():
    assert interquartile_mean([[1.0, 2.0, 3.0], [4.0, 500.0]]) == pytest.approx(3.0)
    assert interquartile_mean([[1.0, 5.0]]) == 3.0


def test_the_probability_of_improvement_is_the_share_of_pairs_with_ties_a_half():
    shares = []
    for task in range(3):
        wins = [1.0 if x > y else 0.5 if x == y else 0.0 for x in FIRST[task] for y in SECOND[task]]
        shares.append(sum(wins) / len(wins))
    assert probability_of_improvement(FIRST, SECOND) == pytest.approx(np.mean(shares))
    assert probability_of_improvement(FIRST, FIRST) == pytest.approx(0.5)
    both = probability_of_improvement(FIRST, SECOND) + probability_of_improvement(SECOND, FIRST)
    assert both == pytest.approx(1.0)


def test_tasks_weigh_alike_whatever_their_number_of_runs():
    assert probability_of_improvement([[1.0], [0.0] * 9], [[0.0], [1.0]]) == 0.5
    assert list(performance_profile([[1.0], [0.0] * 9], [0.5])) == [0.5]


def test_the_performance_profile_counts_runs_above_each_threshold():
    limits = [0.0, 0.5, 0.61, 2.0]
    expected = [sum(x > limit for x in FIRST.ravel()) / 24 for limit in limits]
    assert list(performance_profile(FIRST, limits)) == pytest.approx(expected)


def test_the_stratified_bootstrap_draws_runs_within_each_task():
    tasks = [[1.0, 1.0], [5.0, 5.0, 5.0]]
    seen = []

    def mean_of_means(drawn):
        seen.append([len(runs) for runs in drawn])
        return float(np.mean([runs.mean() for runs in drawn]))

    assert stratified_bootstrap(mean_of_means, tasks, resamples=5) == (3.0, 3.0)
    assert seen == [[2, 3]] * 5


def test_the_spread_of_a_mean_is_that_of_independent_tasks():
    low, high = stratified_bootstrap(lambda drawn: float(np.mean(drawn)), FIRST, resamples=3000)
    expected = np.sqrt(np.sum(FIRST.var(axis=1) / 8)) / 3
    assert (high - low) / 3.92 == pytest.approx(expected, rel=0.06)


def test_paired_groups_are_drawn_together_and_others_apart():
    def gap(one, other):
        return float(np.mean(one) - np.mean(other))

    together = stratified_bootstrap(gap, FIRST, FIRST - 0.1, paired=True, resamples=50)
    assert together == pytest.approx((0.1, 0.1))
    low, high = stratified_bootstrap(gap, FIRST, FIRST - 0.1, resamples=50)
    assert low < 0.09 < 0.11 < high


def test_it_repeats_and_depends_on_its_seed():
    found = stratified_bootstrap(interquartile_mean, FIRST, resamples=100)
    assert found == stratified_bootstrap(interquartile_mean, FIRST, resamples=100)
    assert found != stratified_bootstrap(interquartile_mean, FIRST, resamples=100, seed=1)
    assert found[0] < interquartile_mean(FIRST) < found[1]


def test_groups_that_do_not_match_and_missing_scores_are_refused():
    with pytest.raises(ValueError, match="paired groups need the same runs"):
        stratified_bootstrap(interquartile_mean, [[1.0]], [[1.0, 2.0]], paired=True)
    with pytest.raises(ValueError, match="1 tasks against 2"):
        probability_of_improvement([[1.0]], [[1.0], [2.0]])
    with pytest.raises(ValueError, match="at least one run in every task"):
        interquartile_mean([[1.0], []])
    with pytest.raises(ValueError, match="left out and counted apart"):
        performance_profile([[float("nan")]], [0.0])
