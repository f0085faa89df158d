"""Exact tests and intervals of counts, against closed forms and sums."""

from math import comb

import pytest

from posattn.comparison.statistics import fraction_interval, mcnemar_exact


def test_mcnemar_of_nine_to_one_is_0_0215():
    assert mcnemar_exact(9, 1) == pytest.approx(0.0215, abs=5e-5)
    assert mcnemar_exact(1, 9) == mcnemar_exact(9, 1)
    assert mcnemar_exact(0, 0) == 1.0


@pytest.mark.parametrize(("n", "solved"), [(1, 0), (3, 3), (10, 10), (10, 0)])
def test_the_interval_of_none_or_all_is_the_closed_form(n, solved):
    edge = 0.025 ** (1 / n)
    expected = (0.0, 1 - edge) if solved == 0 else (edge, 1.0)
    assert fraction_interval(solved, n) == pytest.approx(expected)


def test_each_end_is_the_share_at_which_the_count_is_just_unlikely():
    low, high = fraction_interval(7, 10)
    at_least = sum(comb(10, k) * low**k * (1 - low) ** (10 - k) for k in range(7, 11))
    at_most = sum(comb(10, k) * high**k * (1 - high) ** (10 - k) for k in range(8))
    assert (at_least, at_most) == pytest.approx((0.025, 0.025))


def test_of_no_runs_nothing_is_known_and_impossible_counts_are_refused():
    assert fraction_interval(0, 0) == (0.0, 1.0)
    with pytest.raises(ValueError, match="4 successes of 3 runs"):
        fraction_interval(4, 3)
