"""Polar positions: logits against the formula, and the gradient of phases beyond their bound."""

import itertools
import math
from typing import Any

import pytest
import torch
from pydantic import ValidationError

from posattn.encoder.config import EncoderConfig
from posattn.mechanisms import EncoderDims, Geometry, Heads, PolarPositions, PoPEConfig

QUERIES, KEYS, WIDTH = [3, 0, 11, 700], [0, 2, 3, 9, 1000], 5


def mechanism(**options: Any) -> PolarPositions:
    made = PolarPositions(PoPEConfig.model_validate(options), EncoderDims(2 * WIDTH, 2)).double()
    if made.config.phase != "none":
        noise = torch.randn(2, 1, WIDTH, generator=torch.Generator().manual_seed(1))
        made.phases.data.copy_(noise)
    return made


def softplus(x: float) -> float:
    return math.log1p(math.exp(x))


@pytest.mark.parametrize(
    "options",
    [{}, {"phase_bound": "none"}, {"phase": "spread", "base": 50.0}, {"phase": "none"}],
    ids=["default", "free", "spread", "no phase"],
)
def test_products_are_the_formula_written_as_loops(options: dict[str, Any]) -> None:
    pope = mechanism(**options)
    generator = torch.Generator().manual_seed(0)
    query = torch.randn(1, 2, len(QUERIES), WIDTH, generator=generator, dtype=torch.float64)
    key = torch.randn(1, 2, len(KEYS), WIDTH, generator=generator, dtype=torch.float64)
    prepared = pope.prepare(Geometry(torch.tensor([QUERIES]), torch.tensor([KEYS])))
    turned = pope.rotate(Heads(query, key, key), prepared)
    assert turned.value is key
    assert turned.query.shape[-1] == 2 * WIDTH
    found = (turned.query @ turned.key.mT).detach()
    for h, i, j in itertools.product(range(2), range(len(QUERIES)), range(len(KEYS))):
        expected = 0.0
        for c in range(WIDTH):
            delta = 0.0 if options.get("phase") == "none" else pope.phases[h, 0, c].item()
            if options.get("phase_bound") != "none":
                delta = min(max(delta, -2 * math.pi), 0.0)
            angle = (QUERIES[i] - KEYS[j]) * options.get("base", 10000.0) ** (-c / WIDTH) - delta
            length = softplus(float(query[0, h, i, c])) * softplus(float(key[0, h, j, c]))
            expected += length * math.cos(angle)
        assert float(found[0, h, i, j]) == pytest.approx(expected, rel=1e-9, abs=1e-9)


def test_a_phase_beyond_its_bound_has_no_gradient_and_a_free_one_has() -> None:
    for bound, is_stuck in (("clamp", True), ("none", False)):
        pope = mechanism(phase_bound=bound)
        pope.phases.data.fill_(0.5)
        places, states = torch.arange(3)[None], torch.randn(1, 2, 3, WIDTH, dtype=torch.float64)
        turned = pope.rotate(Heads(states, states, states), pope.prepare(Geometry(places, places)))
        (turned.query @ turned.key.mT).square().sum().backward()
        assert bool((pope.phases.grad == 0).all()) == is_stuck


def test_phases_start_at_zero_or_spread_over_a_turn() -> None:
    dims = EncoderDims(64, 2)
    assert bool((PolarPositions(PoPEConfig(), dims).phases == 0).all())
    spread = PolarPositions(PoPEConfig(phase="spread"), dims).phases.flatten().sort().values
    gaps = spread.diff()
    assert -2 * math.pi <= float(spread[0])
    assert float(spread[-1]) <= 0
    assert float(gaps.max()) < 3 * 2 * math.pi / 64
    assert float(gaps.min()) > 0
    assert not list(PolarPositions(PoPEConfig(phase="none"), dims).parameters())


def test_two_rotations_of_one_layer_are_refused_if_one_changes_the_channels() -> None:
    with pytest.raises(ValidationError, match="pope all turn queries and keys in layer 0"):
        EncoderConfig(mechanism=["rope", "pope"])
    apart = [{"name": "rope", "layers": [0, 2]}, {"name": "pope", "layers": [1, 3]}]
    assert len(EncoderConfig(mechanism=apart).mechanism) == 2


def test_the_card_tells_the_phases() -> None:
    card = PoPEConfig().card(EncoderDims(64, 2))
    assert card["phases"] == "trained for each head and channel, 0 at first, clamped to -2 pi .. 0"
    assert "64 real channels" in card["content"]
