"""Sinusoids that are added to the token embeddings."""

import math

import pytest
import torch

from posattn.mechanisms import EncoderDims, SinusoidalConfig, SinusoidalPositions


def added(config: SinusoidalConfig, width: int, positions: list[int]) -> torch.Tensor:
    mechanism = SinusoidalPositions(config, EncoderDims(width, 1))
    hidden = torch.zeros(1, len(positions), width, dtype=torch.float64)
    return mechanism.embed(hidden, torch.tensor([positions]))[0]


@pytest.mark.parametrize("width", [7, 8])
@pytest.mark.parametrize("order", ["interleaved", "concatenated"])
@pytest.mark.parametrize("learned", [False, True])
def test_what_is_added_is_the_closed_form(width: int, order: str, learned: bool) -> None:
    config = SinusoidalConfig.model_validate(
        {"order": order, "scale": 0.25, "base": 100.0, "learned_scale": learned}
    )
    positions = [0, 1, 2, 400]
    found = added(config, width, positions).detach()
    num_sines = (width + 1) // 2
    for row, p in zip(found, positions, strict=True):
        for column in range(width):
            if order == "interleaved":
                t, is_sine = column // 2, column % 2 == 0
            else:
                is_sine = column < num_sines
                t = column if is_sine else column - num_sines
            angle = p * 100.0 ** (-2 * t / width)
            expected = 0.25 * (math.sin(angle) if is_sine else math.cos(angle))
            assert float(row[column]) == pytest.approx(expected, abs=1e-12)


def test_padding_gets_the_first_position() -> None:
    found = added(SinusoidalConfig(), 6, [-1, 0, 1])
    assert torch.equal(found[0], found[1])
    assert not torch.equal(found[1], found[2])


def test_the_amplitude_is_one_parameter_if_it_is_learned() -> None:
    mechanism = SinusoidalPositions(
        SinusoidalConfig(scale=0.5, learned_scale=True), EncoderDims(4, 1)
    )
    assert [(name, p.item()) for name, p in mechanism.named_parameters()] == [("scale", 0.5)]
    assert not list(SinusoidalPositions(SinusoidalConfig(), EncoderDims(4, 1)).parameters())


def test_far_positions_in_half_precision_are_rounded_once() -> None:
    mechanism = SinusoidalPositions(SinusoidalConfig(), EncoderDims(64, 1))
    found = mechanism.embed(torch.zeros(1, 1, 64, dtype=torch.bfloat16), torch.tensor([[8191]]))
    exact = added(SinusoidalConfig(), 64, [8191])
    assert found.dtype == torch.bfloat16
    torch.testing.assert_close(found[0].double(), exact, rtol=0, atol=4e-3)
