"""ALiBi's four encoder forms against their formula, with the authors' slopes."""

import itertools
import math
from typing import Any

import pytest
import torch
from pydantic import ValidationError

from posattn.encoder.config import EncoderConfig
from posattn.mechanisms import ALiBi, ALiBiConfig, EncoderDims
from posattn.testing.mechanism_case import MechanismCase

from .oracle import KEY_POSITIONS, QUERY_POSITIONS, far_call

SIX = [0.25, 0.0625, 0.015625, 0.00390625, 0.5, 0.125]
SIX_PLAIN = [2.0 ** (-8 * k / 6) for k in range(1, 7)]
FOUR = [0.25, 0.0625, 0.015625, 0.00390625]


def case_of(num_heads: int, **options: Any) -> MechanismCase:
    return MechanismCase("alibi", options, hidden_size=4 * num_heads, num_heads=num_heads)


@pytest.mark.parametrize(
    ("num_heads", "options", "left", "right"),
    [
        (6, {}, SIX, SIX),
        (6, {"slopes": "plain"}, SIX_PLAIN, SIX_PLAIN),
        (4, {"variant": "offset"}, FOUR, FOUR),
        (4, {"variant": "separate"}, FOUR, FOUR[::-1]),
        (8, {"variant": "halves"}, FOUR * 2, FOUR * 2),
        (1, {}, [2.0**-8], [2.0**-8]),
    ],
    ids=["six heads", "plain", "offset", "separate", "halves", "one head"],
)
@pytest.mark.parametrize("learned", [False, True], ids=["fixed", "learned"])
def test_the_bias_is_the_formula_written_as_loops(
    num_heads: int, options: dict[str, Any], left: list[float], right: list[float], learned: bool
) -> None:
    case = case_of(num_heads, learned_slopes=learned, **options)
    attention, call = far_call(case)
    if learned:
        mechanism = attention.stack.mechanisms["alibi"]
        left = [math.exp(x) for x in mechanism.log_slopes.tolist()]  # randomised by the case
        is_separate = options.get("variant") == "separate"
        right = [math.exp(x) for x in mechanism.log_slopes_right.tolist()] if is_separate else left
    assert call.bias is not None
    found = call.bias.materialize().detach()
    shape = (1, num_heads, len(QUERY_POSITIONS), len(KEY_POSITIONS))
    assert found.shape == shape
    for _, h, i, j in itertools.product(*map(range, shape)):
        distance = QUERY_POSITIONS[i] - KEY_POSITIONS[j]
        slope = left[h] if distance > 0 else right[h]
        lift = 0.5 if options.get("variant") == "offset" and distance > 0 else 0.0
        assert float(found[0, h, i, j]) == pytest.approx(lift - slope * abs(distance), rel=1e-6)


def test_the_symmetric_bias_of_two_heads_is_the_known_table() -> None:
    case = case_of(2)
    attention, hidden, positions = case.attention(), case.hidden(1, 4), torch.arange(4)[None]
    bias = attention.call(hidden, hidden, attention.prepared(positions, positions)).bias
    assert bias is not None
    found = bias.materialize()
    assert found[0, 0, 0].tolist() == [0.0, -0.0625, -0.125, -0.1875]
    assert found[0, 0, 3].tolist() == [-0.1875, -0.125, -0.0625, 0.0]
    assert found[0, 1, 0, 1] == -0.00390625
    assert torch.equal(found, found.mT)
    assert bool((found <= 0).all())


def test_halves_look_left_in_the_first_heads_and_right_in_the_others() -> None:
    pairs = far_call(case_of(4, variant="halves"))[1].visibility.pairs
    assert pairs is not None
    for h, i, j in itertools.product(range(4), range(4), range(6)):
        distance = QUERY_POSITIONS[i] - KEY_POSITIONS[j]
        assert bool(pairs[0, h, i, j]) == (distance >= 0 if h < 2 else distance <= 0)


@pytest.mark.parametrize("variant", ["symmetric", "separate", "offset"])
def test_the_other_forms_hide_nothing(variant: str) -> None:
    assert far_call(case_of(4, variant=variant))[1].visibility.pairs is None


def test_learned_slopes_start_at_the_rule_and_stay_positive() -> None:
    dims = EncoderDims(24, 6)
    mechanism = ALiBi(ALiBiConfig(learned_slopes=True), dims)
    assert mechanism.log_slopes.exp().tolist() == pytest.approx(SIX)
    with torch.no_grad():
        mechanism.log_slopes.sub_(30.0)
    left, right = mechanism._slopes(torch.device("cpu"))
    assert bool((left > 0).all())
    assert torch.equal(left, right)
    assert not list(ALiBi(ALiBiConfig(), dims).parameters())


@pytest.mark.parametrize(("variant", "num_heads"), [("halves", 3), ("separate", 1)])
def test_heads_that_do_not_suit_the_variant_are_refused(variant: str, num_heads: int) -> None:
    mechanism = {"name": "alibi", "variant": variant}
    with pytest.raises(ValidationError, match=f"variant '{variant}'"):
        EncoderConfig(hidden_size=12, num_heads=num_heads, mechanism=mechanism)


def test_the_card_names_the_variant_and_the_slopes() -> None:
    card = ALiBiConfig(variant="separate").card(EncoderDims(16, 4))
    assert "separate" in card["positions"]
    assert card["slopes"] == "authors: 0.25, 0.0625, 0.01562, 0.003906"
    assert card["slopes to the right"] == "0.003906, 0.01562, 0.0625, 0.25"
