"""Stretched rotary frequencies: what stays, what is divided, and the constants of YaRN."""

import pytest
import torch

from posattn.positions import (
    dynamic_ntk_frequencies,
    inverse_frequencies,
    ntk_frequencies,
    yarn_frequencies,
    yarn_range,
)

PLAIN = inverse_frequencies(32, 64, 10000.0)


def test_ntk_keeps_the_fastest_pair_and_divides_the_slowest_by_the_factor() -> None:
    found = ntk_frequencies(64, 10000.0, 4.0)
    assert found[0] == PLAIN[0]
    assert float(found[-1]) == pytest.approx(float(PLAIN[-1]) / 4.0, rel=1e-12)


def test_dynamic_ntk_of_a_text_twice_as_long_is_ntk_with_the_factor_that_its_formula_gives() -> (
    None
):
    lengths = torch.tensor([[3, 512, 1024]])
    found = dynamic_ntk_frequencies(64, 10000.0, 2.0, 512, lengths)
    torch.testing.assert_close(found[0, 0], PLAIN)
    torch.testing.assert_close(found[0, 1], PLAIN)
    torch.testing.assert_close(found[0, 2], ntk_frequencies(64, 10000.0, 3.0))


def test_the_fast_beta_of_yarn_bounds_the_low_pair() -> None:
    # dim(32) = 3.248 and dim(1) = 15.289 for 64 channels, base 10000, length 512
    assert yarn_range(64, 10000.0, 512, (32.0, 1.0), truncate=True) == (3.0, 16.0)
    low, high = yarn_range(64, 10000.0, 512, (32.0, 1.0), truncate=False)
    assert (low, high) == pytest.approx((3.248, 15.289), abs=5e-3)
    assert yarn_range(64, 10000.0, 4, (32.0, 1e-9), truncate=True) == (0.0, 63.0)


def test_yarn_keeps_fast_pairs_and_divides_slow_ones() -> None:
    found = yarn_frequencies(64, 10000.0, 4.0, 3.0, 16.0)
    torch.testing.assert_close(found[:4], PLAIN[:4])
    torch.testing.assert_close(found[16:], PLAIN[16:] / 4.0)
    assert bool((found[4:16] < PLAIN[4:16]).all())
    assert bool((found[4:16] > PLAIN[4:16] / 4.0).all())
    assert bool(torch.isfinite(yarn_frequencies(64, 10000.0, 4.0, 5.0, 5.0)).all())
