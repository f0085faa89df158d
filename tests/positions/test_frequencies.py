"""Sinusoids and angles against their closed form."""

import math

import pytest
import torch

from posattn.positions import Order, angles, inverse_frequencies, sinusoids


def closed_form(position: int, width: int, base: float, order: Order) -> list[float]:
    sines = [math.sin(position * base ** (-2 * t / width)) for t in range((width + 1) // 2)]
    cosines = [math.cos(position * base ** (-2 * t / width)) for t in range(width // 2)]
    if order == "concatenated":
        return sines + cosines
    return [(sines if column % 2 == 0 else cosines)[column // 2] for column in range(width)]


@pytest.mark.parametrize("order", ["interleaved", "concatenated"])
@pytest.mark.parametrize(("width", "num_positions"), [(7, 3), (8, 5), (1, 2), (2, 2)])
def test_sinusoids_equal_the_closed_form_at_odd_widths_too(
    order: Order, width: int, num_positions: int
) -> None:
    found = sinusoids(torch.arange(num_positions), width, 10000.0, order)
    expected = [closed_form(p, width, 10000.0, order) for p in range(num_positions)]
    torch.testing.assert_close(found, torch.tensor(expected, dtype=torch.float64))


def test_the_two_orders_are_a_permutation_of_columns() -> None:
    positions = torch.arange(9)
    halves = sinusoids(positions, 8, 10000.0, "concatenated")
    alternating = sinusoids(positions, 8, 10000.0, "interleaved")
    assert torch.equal(alternating, halves[:, [0, 4, 1, 5, 2, 6, 3, 7]])


def test_angles_of_far_positions_are_exact_to_float64() -> None:
    frequency = inverse_frequencies(32, 64, 10000.0)
    for position in (257, 1857, 4095, 8191, 1_000_003):
        found = angles(torch.tensor([position]), frequency)
        assert found.dtype == torch.float64
        expected = [position * 10000.0 ** (-2 * t / 64) for t in range(32)]
        assert found[0].tolist() == pytest.approx(expected, rel=1e-14)


def test_negative_distances_mirror_the_sines_only() -> None:
    ahead = sinusoids(torch.arange(1, 6), 6, 100.0, "concatenated")
    behind = sinusoids(-torch.arange(1, 6), 6, 100.0, "concatenated")
    torch.testing.assert_close(behind[:, :3], -ahead[:, :3])
    torch.testing.assert_close(behind[:, 3:], ahead[:, 3:])
