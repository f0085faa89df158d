"""T5's relative position bias against its formula; one table for all layers; scale 1 or not."""

import math
from typing import Any

import pytest
import torch
from pydantic import ValidationError

from posattn.mechanisms import EncoderDims, T5Bias, T5Config
from posattn.testing.mechanism_case import MechanismCase

from .oracle import KEY_POSITIONS, QUERY_POSITIONS, assert_terms, far_call

HEADS = 2


def case_of(**options: Any) -> MechanismCase:
    return MechanismCase("t5", options, hidden_size=8, num_heads=HEADS)


def row_of(distance: int, config: T5Config) -> int:
    side, first = config.num_buckets, 0
    if config.bidirectional:
        side //= 2
        first, distance = (side if distance < 0 else 0), abs(distance)
    distance, exact = max(distance, 0), side // 2
    if distance < exact:
        return first + distance
    steps = math.log(distance / exact) / math.log(config.max_distance / exact) * (side - exact)
    return first + min(exact + math.floor(steps + 1e-9), side - 1)


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"scale": "none"},
        {"num_buckets": 8, "max_distance": 20},
        {"num_buckets": 6, "max_distance": 11},
        {"bidirectional": False},
        {"bidirectional": False, "num_buckets": 5, "max_distance": 12},
    ],
    ids=str,
)
def test_the_bias_is_the_formula_written_as_loops(options: dict[str, Any]) -> None:
    attention, call = far_call(case_of(**options))
    config, mechanism = case_of(**options).config, attention.stack.mechanisms["t5"]
    assert isinstance(config, T5Config)
    assert isinstance(mechanism, T5Bias)
    table = mechanism.table.weight.tolist()
    rows = [[row_of(query - key, config) for key in KEY_POSITIONS] for query in QUERY_POSITIONS]
    one = [[[table[row][head] for row in line] for line in rows] for head in range(HEADS)]
    assert_terms(call, {"distance": [one, one]})
    assert call.scale == pytest.approx(1.0 if config.scale == "none" else 0.5)


def test_the_table_is_one_for_all_layers_and_the_bias_is_computed_once() -> None:
    model = case_of().model(num_layers=3)
    names = [name for name, _ in model.named_parameters() if "position" in name]
    assert names == ["encoder.position.mechanisms.t5.table.weight"]
    seen = []
    model(case_of().ids(1, 5), observer=lambda call, _: seen.append(call.bias.materialize()))
    assert len(seen) == 3
    assert all(bias is seen[0] for bias in seen)


def test_the_causal_form_hides_later_keys_and_the_default_none() -> None:
    assert far_call(case_of())[1].visibility.pairs is None
    pairs = far_call(case_of(bidirectional=False))[1].visibility.pairs
    assert pairs is not None
    expected = [[key <= query for key in KEY_POSITIONS] for query in QUERY_POSITIONS]
    assert pairs[0, 0].tolist() == expected


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"num_buckets": 7}, "num_buckets 7 cannot be split"),
        ({"num_buckets": 2}, "num_buckets 2 cannot be split"),
        ({"num_buckets": 32, "max_distance": 8}, "max_distance 8 leaves no room"),
        ({"num_buckets": 32, "max_distance": 16, "bidirectional": False}, "the 16 exact ones"),
    ],
)
def test_buckets_that_do_not_fit_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        T5Config(**options)


def test_the_far_distances_share_their_row() -> None:
    attention, hidden = case_of().attention(), case_of().hidden(1, 2)
    positions = torch.tensor([[0, 128], [0, 5000]])
    bias = attention.call(
        hidden.expand(2, -1, -1), hidden.expand(2, -1, -1), attention.prepared(positions, positions)
    ).bias
    assert bias is not None
    assert torch.equal(bias.materialize()[0], bias.materialize()[1])


def test_the_card_tells_the_scale_and_the_buckets() -> None:
    dims = EncoderDims(16, 4)
    card = T5Config(scale="none").card(dims)
    assert card["scale"].startswith("1 (")
    assert card["positions"] == "32 buckets for both directions, exact below 8, alike from 128 on"
    assert T5Config().card(dims)["scale"] == "1 / sqrt(4)"
