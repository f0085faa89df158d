"""Rotary positions against complex multiplication, at far positions and in half precision."""

import cmath
import math
from typing import Any

import pytest
import torch
from pydantic import ValidationError

from posattn.encoder.config import EncoderConfig
from posattn.mechanisms import EncoderDims, Geometry, Heads, RotaryConfig, RotaryPositions

WIDTH = 8


def rotated(states: torch.Tensor, positions: list[int], **options: Any) -> torch.Tensor:
    """Return queries as the mechanism turns them."""
    return turned(Heads(states, states, states), positions, **options).query


def turned(heads: Heads, positions: list[int], **options: Any) -> Heads:
    dims = EncoderDims(heads.query.shape[1] * heads.query.shape[3], heads.query.shape[1])
    mechanism = RotaryPositions(RotaryConfig.model_validate(options), dims)
    places = torch.tensor([positions])
    return mechanism.rotate(heads, mechanism.prepare(Geometry(places, places)))


def by_complex_numbers(
    states: torch.Tensor, positions: list[int], base: float, layout: str, channels: int
) -> torch.Tensor:
    """Return each pair of channels as a complex number, times e to the i angle."""
    found = states.clone()
    pairs = channels // 2
    for index, position in enumerate(positions):
        for t in range(pairs):
            first, second = (t, t + pairs) if layout == "half" else (2 * t, 2 * t + 1)
            turn = cmath.exp(1j * position * base ** (-2 * t / channels))
            for b in range(states.shape[0]):
                for h in range(states.shape[1]):
                    row = states[b, h, index]
                    pair = complex(row[first], row[second]) * turn
                    found[b, h, index, first], found[b, h, index, second] = pair.real, pair.imag
    return found


def random_heads(length: int, seed: int = 0) -> torch.Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(2, 2, length, WIDTH, generator=generator, dtype=torch.float64)


@pytest.mark.parametrize("layout", ["half", "interleaved"])
@pytest.mark.parametrize("fraction", [1.0, 0.5, 0.25])
@pytest.mark.parametrize("base", [10000.0, 500.0])
def test_pairs_of_channels_turn_as_complex_numbers(
    layout: str, fraction: float, base: float
) -> None:
    positions, states = [0, 1, 7, 5000], random_heads(4)
    found = rotated(states, positions, layout=layout, fraction=fraction, base=base)
    channels = int(WIDTH * fraction)
    expected = by_complex_numbers(states, positions, base, layout, channels)
    torch.testing.assert_close(found, expected)
    assert torch.equal(found[..., channels:], states[..., channels:])


def test_values_turn_only_if_asked() -> None:
    states = random_heads(3)
    heads = Heads(states, states, states)
    assert turned(heads, [1, 2, 3]).value is states
    with_values = turned(heads, [1, 2, 3], rotate_value=True)
    torch.testing.assert_close(with_values.value, with_values.key)


def test_products_depend_on_the_distance_only() -> None:
    query, key = random_heads(1, seed=1), random_heads(1, seed=2)

    def product(query_position: int, key_position: int) -> torch.Tensor:
        return (rotated(query, [query_position]) * rotated(key, [key_position])).sum(-1)

    torch.testing.assert_close(product(9, 4), product(1009, 1004))
    assert not torch.allclose(product(9, 4), product(4, 9))


def test_layouts_are_one_function_up_to_a_permutation_of_channels() -> None:
    order = [0, 4, 1, 5, 2, 6, 3, 7]  # channel of the half layout at each interleaved channel
    states, positions = random_heads(4), [0, 3, 8, 21]
    half = rotated(states, positions, layout="half")
    interleaved = rotated(states[..., order], positions, layout="interleaved")
    torch.testing.assert_close(interleaved, half[..., order])
    assert not torch.allclose(rotated(states, positions, layout="interleaved"), half)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float32])
def test_cosines_at_far_positions_are_right_in_half_precision(dtype: torch.dtype) -> None:
    """A unit vector in the first half turns into cosines and sines; errors are those of rounding."""
    positions = [257, 1857, 4095, 8191]
    states = torch.zeros(1, 1, 4, 64, dtype=dtype)
    states[..., :32] = 1.0
    found = rotated(states, positions)
    assert found.dtype == dtype
    for index, position in enumerate(positions):
        angles = [position * 10000.0 ** (-2 * t / 64) for t in range(32)]
        expected = [math.cos(angle) for angle in angles] + [math.sin(angle) for angle in angles]
        worst = (found[0, 0, index].double() - torch.tensor(expected).double()).abs().max()
        assert worst < 4e-3


def test_no_offset_and_no_base_is_remembered() -> None:
    states = random_heads(6)
    dims = EncoderDims(2 * WIDTH, 2)
    mechanism = RotaryPositions(RotaryConfig(), dims)

    def at(offset: int) -> torch.Tensor:
        places = torch.arange(offset, offset + 6)[None]
        heads = Heads(states, states, states)
        return mechanism.rotate(heads, mechanism.prepare(Geometry(places, places))).query

    first, second, third = at(0), at(5), at(0)
    assert torch.equal(first, third)
    for offset, found in ((0, first), (5, second)):
        places = list(range(offset, offset + 6))
        expected = by_complex_numbers(states, places, 10000.0, "half", WIDTH)
        torch.testing.assert_close(found, expected)
    other = rotated(states, list(range(6)), base=500000.0)
    expected = by_complex_numbers(states, list(range(6)), 500000.0, "half", WIDTH)
    torch.testing.assert_close(other, expected)


@pytest.mark.parametrize(("fraction", "channels"), [(0.1, 0), (0.4, 3)])
def test_channels_that_make_no_pairs_are_refused(fraction: float, channels: int) -> None:
    mechanism = {"name": "rope", "fraction": fraction}
    with pytest.raises(ValidationError, match=f"is {channels}; choose an even, positive number"):
        EncoderConfig(hidden_size=16, num_heads=2, mechanism=mechanism)


def test_a_fraction_that_is_not_exact_in_binary_keeps_its_channels() -> None:
    assert RotaryConfig(fraction=0.58).rotated(EncoderDims(100, 1)) == 58  # 57.999.. in float64
    assert RotaryConfig(fraction=0.25).rotated(EncoderDims(64, 1)) == 16
