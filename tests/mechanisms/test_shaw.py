"""Shaw et al.'s keys and values against their formula; clipping; which tables there are."""

import itertools
from typing import Any

import pytest
import torch

from posattn.backends import AttentionCall, probabilities
from posattn.mechanisms import EncoderDims, Geometry, ShawConfig, ShawPositions
from posattn.mechanisms.shaw import ShawLayer
from posattn.testing.mechanism_case import MechanismCase, PositionedAttention

from .oracle import KEY_POSITIONS, QUERY_POSITIONS, assert_terms, dot, far_call, head_of

HEADS = 2


def case_of(**options: Any) -> MechanismCase:
    return MechanismCase("shaw", options, hidden_size=8, num_heads=HEADS)


def layer_of(attention: PositionedAttention) -> ShawLayer:
    layer = attention.attention.position.parts["shaw"]
    assert isinstance(layer, ShawLayer)
    return layer


def row_of(query: int, key: int, limit: int) -> int:
    return max(-limit, min(limit, key - query)) + limit


def row_for(table: list[list[float]], row: int, head: int, config: Any) -> list[float]:
    """Return the row that a head reads."""
    return table[row] if config.share_heads else head_of(table[row], head, HEADS)


@pytest.mark.parametrize("share_heads", [True, False])
@pytest.mark.parametrize("limit", [16, 3, 1, 0, 2000])
def test_the_key_term_is_the_formula_written_as_loops(limit: int, share_heads: bool) -> None:
    case = case_of(max_distance=limit, share_heads=share_heads)
    attention, call = far_call(case)
    table, query = layer_of(attention).key_table.weight.tolist(), call.query.tolist()
    shape = (2, HEADS, len(QUERY_POSITIONS), len(KEY_POSITIONS))
    expected: Any = torch.zeros(shape).tolist()
    for b, h, i, j in itertools.product(*map(range, shape)):
        at = row_of(QUERY_POSITIONS[i], KEY_POSITIONS[j], limit)
        row = row_for(table, at, h, case.config)
        expected[b][h][i][j] = 0.5 * dot(query[b][h][i], row)
    assert_terms(call, {"relative key": expected})


@pytest.mark.parametrize(("adds_to", "share_heads"), [("both", True), ("values", False)])
@pytest.mark.parametrize("limit", [4, 0, 2000])
def test_the_value_term_is_the_formula_written_as_loops(
    adds_to: str, share_heads: bool, limit: int
) -> None:
    case = case_of(max_distance=limit, adds_to=adds_to, share_heads=share_heads)
    attention, call = far_call(case)
    attended, probs = attention.attention.backend.attend(call), probabilities(call).tolist()
    table, value = layer_of(attention).value_table.weight.tolist(), call.value.tolist()
    for b, h, i in itertools.product(range(2), range(HEADS), range(len(QUERY_POSITIONS))):
        expected = [0.0] * 4
        for j, key in enumerate(KEY_POSITIONS):
            row = row_for(table, row_of(QUERY_POSITIONS[i], key, limit), h, case.config)
            for d in range(4):
                expected[d] += probs[b][h][i][j] * (value[b][h][j][d] + row[d])
        assert attended[b, h, i].tolist() == pytest.approx(expected, rel=1e-10, abs=1e-10)


def rows_of(limit: int, length: int) -> list[list[int]]:
    """Return the row of the whole table that each pair of a sequence reads."""
    mechanism = ShawPositions(ShawConfig(max_distance=limit), EncoderDims(8, 2))
    positions = torch.arange(length)[None]
    rows = mechanism.prepare(Geometry(positions, positions))
    found: list[list[int]] = (rows.buckets[0].pairs[0] + rows.low).tolist()
    return found


def test_rows_of_eleven_tokens_clipped_at_four_are_the_known_integers() -> None:
    rows = rows_of(4, 11)
    assert rows[0] == [4, 5, 6, 7, 8, 8, 8, 8, 8, 8, 8]
    assert rows[10] == [0, 0, 0, 0, 0, 0, 0, 1, 2, 3, 4]
    for i, j in itertools.product(range(11), range(11)):
        assert rows[i][j] == row_of(i, j, 4)


def test_one_row_and_one_token_are_enough() -> None:
    assert rows_of(0, 3) == [[0, 0, 0]] * 3
    assert rows_of(4, 1) == [[4]]
    assert rows_of(0, 1) == [[0]]


@pytest.mark.parametrize(
    ("adds_to", "tables"),
    [
        ("both", ["key_table", "value_table"]),
        ("keys", ["key_table"]),
        ("values", ["value_table"]),
    ],
)
def test_each_layer_has_its_own_tables_and_no_more_than_it_needs(
    adds_to: str, tables: list[str]
) -> None:
    model = case_of(adds_to=adds_to, max_distance=5).model()
    found = {n: p for n, p in model.named_parameters() if "parts.shaw" in n}
    part = "attention.position.parts.shaw"
    assert sorted(found) == [
        f"encoder.layers.{layer}.{part}.{table}.weight" for layer in range(2) for table in tables
    ]
    assert all(table.shape == (11, 4) for table in found.values())


def test_keys_alone_run_on_a_backend_that_forms_no_probabilities() -> None:
    assert {"eager", "sdpa"} <= set(case_of(adds_to="keys").able_backends())
    assert case_of(adds_to="both").able_backends() == ["eager"]


def test_distances_past_the_table_share_its_last_row() -> None:
    def far(distance: int) -> AttentionCall:
        attention, hidden = case_of(max_distance=4).attention(), case_of().hidden(1, 2)
        positions = torch.tensor([[0, distance]])
        return attention.call(hidden, hidden, attention.prepared(positions, positions))

    bias = far(4).bias
    other = far(5000).bias
    assert bias is not None
    assert other is not None
    assert torch.equal(bias.materialize(), other.materialize())


def test_the_card_says_where_vectors_are_added() -> None:
    card = ShawConfig(adds_to="values", max_distance=8).card(EncoderDims(16, 4))
    assert card["positions"].endswith("added to values")
    assert card["tables"].startswith("17 x 4 for values, shared by all heads")
    assert "for each of 4 heads" in ShawConfig(share_heads=False).card(EncoderDims(16, 4))["tables"]
