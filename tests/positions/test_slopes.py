"""ALiBi's slopes: the authors' rule for any number of heads, and the plain series."""

import pytest

from posattn.positions import authors_slopes, end_to_end_slopes, plain_slopes

EIGHT = [0.5, 0.25, 0.125, 0.0625, 0.03125, 0.015625, 0.0078125, 0.00390625]
GOLDEN = {
    1: [0.00390625],
    2: [0.0625, 0.00390625],
    6: [0.25, 0.0625, 0.015625, 0.00390625, 0.5, 0.125],
    8: EIGHT,
    12: [*EIGHT, 0.70710678, 0.35355339, 0.1767767, 0.08838835],
}


@pytest.mark.parametrize("num_heads", GOLDEN)
def test_slopes_are_those_of_the_authors_code(num_heads: int) -> None:
    assert authors_slopes(num_heads) == pytest.approx(GOLDEN[num_heads], abs=5e-9)


@pytest.mark.parametrize("num_heads", [4, 6, 8, 12, 20])
def test_mpt_builds_the_same_slopes_in_another_way(num_heads: int) -> None:
    """MPT takes odd, then even places of the next power of two's series."""
    power = 1 << (num_heads - 1).bit_length()
    series = [2.0 ** (-8.0 * k / power) for k in range(1, power + 1)]
    if power != num_heads:
        series = (series[1::2] + series[0::2])[:num_heads]
    assert authors_slopes(num_heads) == pytest.approx(series)


def test_the_plain_series_is_another_model_unless_heads_are_a_power_of_two() -> None:
    assert plain_slopes(8) == authors_slopes(8)
    assert plain_slopes(6)[0] == pytest.approx(0.39685, abs=1e-5)
    assert plain_slopes(6)[-1] == pytest.approx(2.0**-8)


def test_the_series_from_end_to_end_is_a_third_model() -> None:
    twelve = end_to_end_slopes(12)
    assert twelve[:3] == pytest.approx([0.5, 0.322, 0.207], abs=5e-4)
    assert twelve[-1] == 2.0**-8
    assert end_to_end_slopes(8) == pytest.approx(EIGHT)
    assert end_to_end_slopes(1) == [0.5]
