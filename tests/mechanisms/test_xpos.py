"""xPos: products against the formula, written as loops, and why it is causal."""

import itertools
import math

import pytest
import torch
from pydantic import ValidationError

from posattn.encoder.config import EncoderConfig
from posattn.mechanisms import EncoderDims, Geometry, Heads, XPos, XPosConfig

QUERIES, KEYS, WIDTH = [3, 0, 11, 700], [0, 2, 3, 9, 12, 500], 8


@pytest.mark.parametrize("layout", ["interleaved", "half"])
@pytest.mark.parametrize(("scale_base", "gamma"), [(512.0, 0.4), (64.0, 0.9)])
def test_products_are_the_formula_written_as_loops(
    layout: str, scale_base: float, gamma: float
) -> None:
    config = XPosConfig(causal=True, base=500.0, scale_base=scale_base, gamma=gamma, layout=layout)
    mechanism = XPos(config, EncoderDims(2 * WIDTH, 2))
    generator = torch.Generator().manual_seed(0)
    query = torch.randn(1, 2, len(QUERIES), WIDTH, generator=generator, dtype=torch.float64)
    key = torch.randn(1, 2, len(KEYS), WIDTH, generator=generator, dtype=torch.float64)
    prepared = mechanism.prepare(Geometry(torch.tensor([QUERIES]), torch.tensor([KEYS])))
    turned = mechanism.rotate(Heads(query, key, key), prepared)
    assert turned.value is key
    found = turned.query @ turned.key.mT
    pairs = WIDTH // 2
    for h, i, j in itertools.product(range(2), range(len(QUERIES)), range(len(KEYS))):
        distance, expected = QUERIES[i] - KEYS[j], 0.0
        for t in range(pairs):
            a, b = (t, t + pairs) if layout == "half" else (2 * t, 2 * t + 1)
            q, k = query[0, h, i].tolist(), key[0, h, j].tolist()
            angle = distance * 500.0 ** (-2 * t / WIDTH)
            even, odd = q[a] * k[a] + q[b] * k[b], q[a] * k[b] - q[b] * k[a]
            decay = ((2 * t / WIDTH + gamma) / (1 + gamma)) ** (distance / scale_base)
            expected += decay * (even * math.cos(angle) + odd * math.sin(angle))
        assert float(found[0, h, i, j]) == pytest.approx(expected, rel=1e-9, abs=1e-9)


@pytest.mark.parametrize("options", [{}, {"causal": False}])
def test_it_is_refused_without_causal(options: dict[str, bool]) -> None:
    with pytest.raises(ValidationError, match=r"causal attention only.*set causal: true"):
        EncoderConfig(mechanism={"name": "xpos", **options})
    assert EncoderConfig(mechanism={"name": "xpos", "causal": True}).mechanism[0].traits().causal


def test_an_odd_number_of_channels_is_refused() -> None:
    with pytest.raises(ValidationError, match="head_dim 3 is odd"):
        EncoderConfig(hidden_size=6, num_heads=2, mechanism={"name": "xpos", "causal": True})


def test_the_card_tells_the_decay() -> None:
    card = XPosConfig(causal=True).card(EncoderDims(64, 1))
    assert card["decay"].startswith(
        "per 512 positions, from x 0.2857 in the fastest pair to x 0.97"
    )
