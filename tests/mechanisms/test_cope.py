"""CoPE against its formula, counted one key at a time, and what is never counted."""

import itertools
import math

import pytest
import torch

from posattn.bias import Padding
from posattn.mechanisms import CoPEConfig, EncoderDims
from posattn.testing.mechanism_case import MechanismCase

from .oracle import dot, head_of, linear

KEYS = [4, 0, 7, 2, 3, 11, 5]  # in no order
QUERIES = [3, 11, 0]
VISIBLE = [True, True, True, False, True, True, True]
HEADS = 2


def interpolated(query: list[float], table: list[list[float]], count: float) -> float:
    count = min(count, len(table) - 1)
    low, high = math.floor(count), math.ceil(count)
    share = count - low
    return dot(query, table[high]) * share + dot(query, table[low]) * (1 - share)


@pytest.mark.parametrize(
    ("causal", "count_to"), [(False, "between"), (True, "between"), (False, "to_end")]
)
@pytest.mark.parametrize("max_position", [2, 4, 40])
@pytest.mark.parametrize("hides", [False, True], ids=["all visible", "one key hidden"])
def test_the_bias_is_the_formula_written_as_loops(
    causal: bool, count_to: str, max_position: int, hides: bool
) -> None:
    options = {"causal": causal, "max_position": max_position, "count": count_to}
    case = MechanismCase("cope", options, 8, HEADS)
    attention = case.attention()
    query_hidden, hidden = case.hidden(1, len(QUERIES)), case.hidden(1, len(KEYS))
    visible = VISIBLE if hides else [True] * len(KEYS)
    prepared = attention.prepared(
        torch.tensor([QUERIES]), torch.tensor([KEYS]), Padding(torch.tensor([visible]))
    )
    bias = attention.call(query_hidden, hidden, prepared).bias
    assert list(bias.terms()) == ["cope"]
    found = bias.materialize()
    layer = attention.attention.position.parts["cope"]
    queries = linear(query_hidden[0].tolist(), attention.attention.query_proj)
    keys = linear(hidden[0].tolist(), attention.attention.key_proj)
    for h, i, j in itertools.product(range(HEADS), range(len(QUERIES)), range(len(KEYS))):
        if not visible[j] or (causal and KEYS[j] > QUERIES[i]):
            continue
        query, between = head_of(queries[i], h, HEADS), sorted((QUERIES[i], KEYS[j]))
        count = 0.0
        for t, position in enumerate(KEYS):
            reaches = position >= KEYS[j]
            if count_to == "between":
                reaches = between[0] <= position <= between[1]
            is_counted = visible[t] and reaches
            if is_counted and not (causal and position > QUERIES[i]):
                logit = dot(query, head_of(keys[t], h, HEADS)) / math.sqrt(4)
                count += 1 / (1 + math.exp(-logit))
        one_table = count_to == "to_end" or KEYS[j] <= QUERIES[i]
        table = layer.left if one_table else layer.right
        expected = interpolated(query, table.weight.tolist(), count)
        assert float(found[0, h, i, j]) == pytest.approx(expected, abs=1e-9)


def test_only_the_order_of_positions_matters() -> None:
    case = MechanismCase("cope")
    model, ids = case.model(), case.ids(2, 6)
    stretched = torch.tensor([[0, 5, 6, 20, 21, 300]])
    plain = model.encoder(ids)
    torch.testing.assert_close(model.encoder(ids, positions=stretched), plain)


def test_a_window_limits_what_is_counted() -> None:
    case = MechanismCase("cope")
    near, far = case.model(window={"size": 4}), case.model()
    ids = case.ids(1, 7)
    other = ids.clone()
    other[0, 6] = ids[0, 6] % 20 + 1
    state = near.encoder.begin(ids)
    assert not torch.allclose(near.encoder(ids), far.encoder(ids))
    first = [near.encoder.run(near.encoder.embed(x, None, state), state)[1] for x in (ids, other)]
    torch.testing.assert_close(first[0][:, :4], first[1][:, :4])


def test_the_card_tells_the_tables() -> None:
    card = CoPEConfig(max_position=9).card(EncoderDims(8, 2))
    assert card["tables"] == "a table for each side of 9 rows, own in each layer, shared by heads"
    assert "one table" in CoPEConfig(causal=True).card(EncoderDims(8, 2))["tables"]
