"""Sandwich against its formula, against the product of two sinusoidal embeddings, and per head."""

import math
from typing import Any

import pytest
import torch
from pydantic import ValidationError

from posattn.mechanisms import EncoderDims, Geometry, Sandwich, SandwichConfig
from posattn.positions import sinusoids
from posattn.testing.mechanism_case import MechanismCase

from .oracle import KEY_POSITIONS, QUERY_POSITIONS, assert_terms, far_call

HEADS = 3


def case_of(**options: Any) -> MechanismCase:
    return MechanismCase("sandwich", options, hidden_size=4 * HEADS, num_heads=HEADS)


def bias_of(length: int, num_heads: int, **options: Any) -> torch.Tensor:
    """Return the scores of each head by distance, as the mechanism prepares them."""
    mechanism = Sandwich(SandwichConfig(**options), EncoderDims(4 * num_heads, num_heads))
    positions = torch.arange(length)[None]
    return mechanism.prepare(Geometry(positions, positions)).scores


@pytest.mark.parametrize("options", [{}, {"width": 6, "base": 50.0}, {"width": 2}], ids=str)
@pytest.mark.parametrize("bidirectional", [True, False])
def test_the_bias_is_the_formula_written_as_loops(
    options: dict[str, Any], bidirectional: bool
) -> None:
    config = SandwichConfig(**options)
    call = far_call(case_of(bidirectional=bidirectional, **options))[1]
    one = []
    for head in range(1, HEADS + 1):
        rows = []
        for query in QUERY_POSITIONS:
            row = []
            for key in KEY_POSITIONS:
                total = 0.0
                for t in range(config.width // 2):
                    total += math.cos((query - key) * config.base ** (-2 * t / config.width))
                row.append(total / (8 * head / HEADS))
            rows.append(row)
        one.append(rows)
    assert_terms(call, {"distance": [one, one]})


def test_the_bias_is_the_product_of_the_embeddings_of_both_positions() -> None:
    embedding = sinusoids(torch.arange(20), 128, 10000.0, "interleaved")
    product = embedding @ embedding.T
    scores = bias_of(20, 8)
    for head in range(8):  # eight heads: compression 1, 2, .., 8
        distance = (torch.arange(20)[:, None] - torch.arange(20)).abs()
        torch.testing.assert_close(scores[head][distance] * (head + 1), product)


def test_a_pair_at_distance_zero_has_all_cosines_at_one() -> None:
    assert bias_of(1, 4)[:, 0].tolist() == [64 / 2, 64 / 4, 64 / 6, 64 / 8]
    assert bias_of(1, 12, width=10)[5, 0].item() == pytest.approx(5 / 4)


def test_nearby_keys_are_preferred_and_the_first_heads_most() -> None:
    scores = bias_of(40, 4)
    assert bool((scores[:, 1:10].diff() < 0).all())
    fall = scores[:, 0] - scores[:, 30]
    assert bool((fall.diff() < 0).all())


def test_nothing_is_learned() -> None:
    model = case_of().model()
    assert not [name for name, _ in model.named_parameters() if "position" in name]


def test_the_causal_form_hides_later_keys_and_the_default_none() -> None:
    assert far_call(case_of())[1].visibility.pairs is None
    pairs = far_call(case_of(bidirectional=False))[1].visibility.pairs
    assert pairs is not None
    expected = [[key <= query for key in KEY_POSITIONS] for query in QUERY_POSITIONS]
    assert pairs[0, 0].tolist() == expected


def test_an_odd_width_is_refused() -> None:
    with pytest.raises(ValidationError, match="width 7 is odd"):
        SandwichConfig(width=7)


def test_the_card_tells_the_compression_and_what_it_cannot_tell() -> None:
    card = SandwichConfig().card(EncoderDims(16, 4))
    assert card["compression"] == "divided by 2, 4, 6, 8"
    assert "cannot tell left from right" in card["positions"]
