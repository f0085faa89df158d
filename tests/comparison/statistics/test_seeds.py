"""The bootstrap over seeds: against all resamples, against its formula, and by simulation."""

from itertools import product

import numpy as np
import pytest
from scipy.stats import norm

from posattn.comparison.statistics import bootstrap_seeds

DIFFERENCES = [0.31, 0.12, -0.05, 0.22, 0.9]


def all_means(values):
    return np.array([np.mean(drawn) for drawn in product(values, repeat=len(values))])


def test_the_percentile_interval_is_that_of_all_resamples():
    expected = np.percentile(all_means(DIFFERENCES), [2.5, 97.5])
    found = bootstrap_seeds(DIFFERENCES, method="percentile")
    assert (found.low, found.high) == pytest.approx(tuple(expected), abs=0.02)
    assert (found.method, found.n) == ("percentile", 5)


def test_the_bca_interval_is_efrons_formula_over_all_resamples():
    means, observed = all_means(DIFFERENCES), np.mean(DIFFERENCES)
    below = (np.mean(means < observed) + np.mean(means <= observed)) / 2
    left_out = [np.mean(np.delete(DIFFERENCES, i)) for i in range(5)]
    spread = np.mean(left_out) - np.array(left_out)
    acceleration = np.sum(spread**3) / (6 * np.sum(spread**2) ** 1.5)
    shift = norm.ppf(below)
    points = []
    for z in norm.ppf([0.025, 0.975]):
        points.append(norm.cdf(shift + (shift + z) / (1 - acceleration * (shift + z))))
    found = bootstrap_seeds(DIFFERENCES)
    assert found.method == "BCa"
    assert (found.low, found.high) == pytest.approx(tuple(np.quantile(means, points)), abs=0.02)


def test_it_repeats_and_depends_on_its_seed():
    assert bootstrap_seeds(DIFFERENCES) == bootstrap_seeds(DIFFERENCES)
    assert bootstrap_seeds(DIFFERENCES) != bootstrap_seeds(DIFFERENCES, seed=1)


def test_one_seed_has_no_interval_and_equal_differences_one_without_width():
    assert bootstrap_seeds([0.1]) is None
    assert bootstrap_seeds([]) is None
    found = bootstrap_seeds([0.1, 0.1, 0.1])
    assert (found.low, found.high) == (0.1, 0.1)


@pytest.mark.parametrize("differences", [[0.1, 0.3], [0.1, 0.1, 0.4], [0.0, 0.0, 0.0, 1e-9]])
def test_few_or_nearly_equal_seeds_have_finite_ends(differences):
    found = bootstrap_seeds(differences)
    assert np.isfinite([found.low, found.high]).all()
    assert min(differences) - 1e-9 <= found.low <= found.high <= max(differences) + 1e-9


def test_where_bca_has_no_value_the_percentile_interval_is_returned_and_says_so():
    found = [bootstrap_seeds(DIFFERENCES, resamples=2, seed=seed) for seed in range(8)]
    assert {interval.method for interval in found} == {"BCa", "percentile"}
    assert all(np.isfinite([interval.low, interval.high]).all() for interval in found)


def test_three_seeds_cover_less_than_they_say_and_twelve_nearly_what_they_say():
    random = np.random.default_rng(0)

    def coverage(n):
        intervals = [bootstrap_seeds(random.normal(0, 1, n), resamples=300) for _ in range(200)]
        return np.mean([found.low <= 0 <= found.high for found in intervals])

    assert coverage(3) < 0.85
    assert 0.86 < coverage(12) <= 1
