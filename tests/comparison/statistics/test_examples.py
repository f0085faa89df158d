"""Bootstraps over saved examples: against loops, known variances, and simulated coverage."""

import numpy as np
import pytest

from posattn.comparison.statistics import bootstrap_samples, multi_bootstrap


def test_the_bootstrap_over_samples_pairs_them():
    random = np.random.default_rng(3)
    targets = np.full(400, 10.0)
    hard = random.normal(2.0, 1.0, 400)
    second = [(hard * 10, targets)] * 2
    first = [((hard - 0.1 + random.normal(0, 0.05, 400)) * 10, targets) for _ in range(2)]
    low, high = bootstrap_samples(first, second)
    assert low < -0.1 < high
    assert high - low < 0.02, "samples that are hard for both arms must cancel"
    assert bootstrap_samples(first, second) == (low, high)


def runs(seeds, examples, *, effect=0.0, seed_sd=0.0, example_sd=0.3, random):
    """Draw the sums of paired arms: each seed moves the second arm, each example both arms."""
    hard = random.normal(2.0, 1.0, examples)
    targets = random.integers(1, 12, examples).astype(float)
    first, second = [], []
    for shift in random.normal(0, seed_sd, seeds) if seed_sd else np.zeros(seeds):
        base = hard + random.normal(0, 0.05)
        own = base + effect + shift + random.normal(0, example_sd, examples)
        first.append((own * targets, targets))
        second.append((base * targets, targets))
    return first, second


def test_the_multi_bootstrap_is_the_loop_over_its_resamples():
    random = np.random.default_rng(0)
    first, second = runs(3, 6, seed_sd=0.1, random=random)
    found = multi_bootstrap(first, second, resamples=150, seed=4)

    again = np.random.default_rng(4)
    shares = again.multinomial(3, [1 / 3] * 3, size=150)
    drawn = np.concatenate([again.integers(0, 6, size=(rows, 6)) for rows in (100, 50)])
    differences = []
    for counts, rows in zip(shares, drawn, strict=True):
        total = 0.0
        for run, count in enumerate(counts):
            for arm, sign in ((first, 1), (second, -1)):
                loss = sum(arm[run][0][row] for row in rows)
                total += sign * count * loss / sum(arm[run][1][row] for row in rows)
        differences.append(total / 3)
    assert found == pytest.approx(tuple(np.percentile(differences, [2.5, 97.5])))


def test_one_example_each_leaves_the_spread_over_seeds_and_pairing_takes_out_what_seeds_share():
    shared = np.random.default_rng(1).normal(0, 1.0, 12)
    own = np.random.default_rng(2).normal(0, 0.1, 12)
    one = np.ones(1)
    first = [(np.array([s + o]), one) for s, o in zip(shared, own, strict=True)]
    second = [(np.array([s]), one) for s in shared]
    low, high = multi_bootstrap(first, second, resamples=4000)
    assert (high - low) / 3.92 == pytest.approx(np.std(own) / 12**0.5, rel=0.06)
    low, high = multi_bootstrap(first, second, paired_seeds=False, resamples=4000)
    apart = (np.var(shared + own) + np.var(shared)) / 12
    assert (high - low) / 3.92 == pytest.approx(apart**0.5, rel=0.06)


def test_equal_seeds_leave_the_spread_over_examples():
    random = np.random.default_rng(3)
    (run, *_), (other, *_) = runs(1, 300, random=random)
    wide = multi_bootstrap([run] * 4, [other] * 4, resamples=2000)
    held = bootstrap_samples([run], [other], resamples=2000)
    assert wide == pytest.approx(held, abs=0.006)


def test_arms_without_common_seeds_may_have_different_numbers_of_them():
    random = np.random.default_rng(5)
    first, second = runs(5, 40, effect=-0.5, random=random)
    low, high = multi_bootstrap(first, second[:3], paired_seeds=False)
    assert low < -0.5 < high
    with pytest.raises(ValueError, match="5 runs of one arm, 3 of the other"):
        multi_bootstrap(first, second[:3])


def test_the_multi_bootstrap_repeats_and_depends_on_its_seed():
    first, second = runs(4, 30, seed_sd=0.1, random=np.random.default_rng(6))
    found = multi_bootstrap(first, second)
    assert multi_bootstrap(first, second) == found
    assert multi_bootstrap(first, second, seed=1) != found


def test_examples_without_targets_change_nothing():
    first, second = runs(3, 20, seed_sd=0.1, random=np.random.default_rng(7))
    padded = [
        [(np.append(sums, 0.0), np.append(counts, 0.0)) for sums, counts in arm]
        for arm in (first, second)
    ]
    assert multi_bootstrap(*padded) == multi_bootstrap(first, second)


def test_runs_on_other_examples_and_examples_without_any_target_are_refused():
    first, _ = runs(2, 5, random=np.random.default_rng(8))
    other, _ = runs(2, 6, random=np.random.default_rng(8))
    with pytest.raises(ValueError, match="need the same examples"):
        multi_bootstrap(first, other)
    nothing = [(np.zeros(5), np.zeros(5))] * 2
    with pytest.raises(ValueError, match="no example has a target"):
        multi_bootstrap(nothing, nothing)


def test_over_seeds_and_examples_the_interval_covers_and_with_seeds_held_it_does_not():
    random = np.random.default_rng(9)
    covered = held = 0
    for _ in range(150):
        first, second = runs(10, 40, effect=0.2, seed_sd=0.15, random=random)
        low, high = multi_bootstrap(first, second, resamples=200)
        covered += low <= 0.2 <= high
        low, high = bootstrap_samples(first, second, resamples=200)
        held += low <= 0.2 <= high
    assert 0.86 <= covered / 150 <= 0.99
    assert held / 150 < 0.8, "spread over seeds is not in the interval with seeds held"
