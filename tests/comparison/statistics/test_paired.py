"""Statistics against scipy, against loops, and against the numbers of the cases."""

from itertools import product

import numpy as np
import pytest
from scipy import stats

from posattn.comparison.statistics import (
    detectable_in_sd,
    paired_difference,
    sample_sd,
    sign_flip_p,
    smallest_sign_flip_p,
    summarize,
)


def by_seed(*values):
    return dict(enumerate(values))


def test_the_standard_deviation_is_that_of_a_sample():
    assert sample_sd([0.80, 0.82, 0.90]) == pytest.approx(0.0529150, abs=1e-7)
    assert summarize([0.80, 0.82, 0.90]).sd == sample_sd([0.80, 0.82, 0.90])


def test_one_value_has_a_mean_and_no_spread():
    summary = summarize([1.5])
    assert (summary.n, summary.mean, summary.sd) == (1, 1.5, None)
    assert summarize([]).mean is None


def test_a_paired_difference_is_the_paired_t_test_of_scipy():
    first, second = [1.31, 1.28, 1.36, 1.30], [1.40, 1.33, 1.45, 1.37]
    found = paired_difference(by_seed(*first), by_seed(*second))
    expected = stats.ttest_rel(first, second)
    interval = expected.confidence_interval(0.95)
    assert found.p_t == pytest.approx(expected.pvalue)
    assert (found.low, found.high) == pytest.approx((interval.low, interval.high))
    assert found.mean == pytest.approx(np.mean(first) - np.mean(second))
    assert found.n == 4


def test_only_common_seeds_are_paired():
    found = paired_difference({0: 1.0, 1: 2.0, 2: 9.0}, {1: 1.5, 0: 0.0, 3: 4.0})
    assert found.n == 2
    assert found.mean == pytest.approx(0.75)


def test_a_single_seed_gives_no_interval_and_says_so():
    found = paired_difference({0: 1.0}, {0: 1.2})
    assert found.mean == pytest.approx(-0.2)
    assert (found.low, found.high, found.p_t, found.p_exact) == (None, None, None, None)
    assert "one common seed" in found.reason


def test_no_common_seed_gives_no_difference_and_says_so():
    found = paired_difference({0: 1.0}, {1: 1.2})
    assert (found.n, found.mean) == (0, None)
    assert "no seed finished in both arms" in found.reason


def test_equal_values_do_not_differ():
    found = paired_difference(by_seed(1.0, 2.0), by_seed(1.0, 2.0))
    assert (found.mean, found.p_t, found.p_exact) == (0.0, 1.0, 1.0)


def test_a_constant_difference_is_not_tested_by_t():
    found = paired_difference(by_seed(1.5, 2.5), by_seed(1.0, 2.0))
    assert found.p_t is None
    assert "no spread" in found.reason


@pytest.mark.parametrize(("n", "least"), [(1, 1.0), (3, 0.25), (5, 0.0625), (6, 0.03125)])
def test_the_least_sign_flip_p_is_reached_when_all_seeds_agree(n, least):
    assert smallest_sign_flip_p(n) == least
    assert sign_flip_p(np.arange(1.0, n + 1)) == pytest.approx(least)


def test_the_sign_flip_p_counts_all_flips():
    differences = np.array([0.3, -0.1, 0.25, 0.02, 0.4])
    sums = [abs(np.dot(signs, differences)) for signs in product((1, -1), repeat=5)]
    expected = np.mean([s >= abs(differences.sum()) - 1e-12 for s in sums])
    assert sign_flip_p(differences) == pytest.approx(expected)


def test_many_seeds_are_flipped_at_random_with_a_p_that_is_never_zero():
    assert 0 < sign_flip_p(np.full(20, 1.0)) < 1e-3
    assert sign_flip_p(np.array([1.0, -1.0] * 10)) == 1.0


@pytest.mark.parametrize(("n", "alpha"), [(3, 0.05), (3, 0.05 / 7), (6, 0.05), (2, 0.05 / 28)])
def test_the_detectable_difference_is_found_with_80_percent_power(n, alpha):
    shift = detectable_in_sd(n, alpha) * n**0.5
    critical = stats.t.ppf(1 - alpha / 2, n - 1)
    assert stats.nct.sf(critical, n - 1, shift) == pytest.approx(0.8, abs=1e-3)


def test_more_seeds_see_smaller_differences():
    sizes = [detectable_in_sd(n, 0.05) for n in (2, 3, 6, 12)]
    assert sizes == sorted(sizes, reverse=True)
