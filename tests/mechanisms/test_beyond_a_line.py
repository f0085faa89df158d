"""Tables over grids and given relations, against loops in float64."""

import math
from collections.abc import Callable
from typing import Any, Literal

import pytest
import torch
from einops import rearrange

from posattn.backends import AttentionCall
from posattn.mechanisms import (
    DisentangledAttention,
    EncoderDims,
    Geometry,
    Heads,
    LearnedConfig,
    LearnedPositions,
    RotaryConfig,
    RotaryPositions,
    SinusoidalConfig,
    SinusoidalPositions,
    T5Bias,
)
from posattn.mechanisms.disentangled import DisentangledLayer
from posattn.mechanisms.mlp import DistanceNetwork
from posattn.mechanisms.shaw import ShawLayer
from posattn.positions import GivenPairs
from posattn.relations import AnyRelation, CategoryRelation, DistanceRelation, GridRelation
from posattn.testing.mechanism_case import MechanismCase, PositionedAttention

from .oracle import Rows, assert_terms, dot, head_of, linear

HEADS, WIDTH, LIMIT = 2, 8, 2
QUERIES, KEYS = [0, 1, 6, 12], [0, 2, 5, 9, 12]
GIVEN = [[-1, 0, 3, 1, 2], [2, 2, -1, 0, 3], [1, 0, 0, 3, -1], [3, 1, 2, 2, 0]]
GRID: dict[str, Any] = {"rows": 3, "columns": 4}
RELATIONS: dict[str, AnyRelation] = {
    "factorised": GridRelation(**GRID, outside=1),
    "joint": GridRelation(**GRID, outside=1, offsets="joint"),
    "columns first": GridRelation(rows=3, columns=5, first="column"),
    "joint, columns first": GridRelation(rows=3, columns=5, first="column", offsets="joint"),
    "categories": CategoryRelation(num_values=4),
    "distances": DistanceRelation(signed=True),
}
each_relation = pytest.mark.parametrize("relation", RELATIONS.values(), ids=RELATIONS)
Row = Callable[[int], int]


def rows_of(relation: Any, i: int, j: int, per_axis: int, row: Row) -> list[int]:
    """Return the rows of the table whose terms the pair adds."""
    if isinstance(relation, CategoryRelation):
        return [GIVEN[i][j]] if GIVEN[i][j] >= 0 else []
    if isinstance(relation, DistanceRelation):
        return [row(GIVEN[i][j])]
    query, key = QUERIES[i] - relation.outside, KEYS[j] - relation.outside
    is_joint = relation.offsets == "joint"
    if query < 0 or key < 0:
        last = per_axis**2 if is_joint else 2 * per_axis
        return [last + (2 if query < 0 and key < 0 else int(key < 0))]
    offsets = [
        query // relation.columns - key // relation.columns,
        query % relation.columns - key % relation.columns,
    ]
    first, second = map(row, offsets if relation.first == "row" else offsets[::-1])
    return [first * per_axis + second] if is_joint else [first, per_axis + second]


def call_of(name: str, relation: Any, **options: Any) -> tuple[PositionedAttention, AttentionCall]:
    case = MechanismCase(name, options, hidden_size=WIDTH, num_heads=HEADS)
    attention = case.attention(relation=relation)
    given = GivenPairs(torch.tensor([GIVEN])) if relation.is_given else None
    places = torch.tensor([QUERIES]), torch.tensor([KEYS])
    prepared = attention.stack.prepare(Geometry(*places, given=given), (), None)
    query, key = case.hidden(2, len(QUERIES)), case.hidden(2, len(KEYS))
    return attention, attention.call(query, key, prepared)


def loops(term: Callable[[int, int, int, int], float]) -> list[list[Rows]]:
    """Return a term of (sequence, head, query, key) for all of them."""
    counts = range(len(QUERIES)), range(len(KEYS))
    return [
        [[[term(b, h, i, j) for j in counts[1]] for i in counts[0]] for h in range(HEADS)]
        for b in range(2)
    ]


@each_relation
def test_t5s_bias_is_the_sum_of_the_pairs_rows(relation: Any) -> None:
    attention, call = call_of("t5", relation, num_buckets=8, max_distance=3)
    mechanism = attention.stack.mechanisms["t5"]
    assert isinstance(mechanism, T5Bias)
    table = mechanism.table.weight.tolist()

    def row(distance: int) -> int:  # exact below 2, one bucket for 2, one beyond
        return min(abs(distance), 3) + 4 * (distance < 0)

    def term(b: int, h: int, i: int, j: int) -> float:
        return sum(table[at][h] for at in rows_of(relation, i, j, 8, row))

    assert_terms(call, {"distance": loops(term)})


@each_relation
def test_shaws_keys_and_values_are_sums_of_the_pairs_rows(relation: Any) -> None:
    attention, call = call_of("shaw", relation, max_distance=LIMIT)
    layer = attention.attention.position.parts["shaw"]
    assert isinstance(layer, ShawLayer)
    query, keys = call.query.tolist(), layer.key_table.weight.tolist()

    def rows(i: int, j: int) -> list[int]:
        per_axis = 2 * LIMIT + 1
        return rows_of(relation, i, j, per_axis, lambda at: LIMIT - max(-LIMIT, min(at, LIMIT)))

    def term(b: int, h: int, i: int, j: int) -> float:
        return call.scale * sum(dot(query[b][h][i], keys[at]) for at in rows(i, j))

    assert_terms(call, {"relative key": loops(term)})
    assert call.relative_values is not None
    probs = torch.rand(2, HEADS, len(QUERIES), len(KEYS), dtype=torch.float64)
    expected = torch.zeros(2, HEADS, len(QUERIES), WIDTH // HEADS, dtype=torch.float64)
    for b, h, i, j in torch.cartesian_prod(*map(torch.arange, probs.shape)).tolist():
        for at in rows(i, j):
            expected[b, h, i] += probs[b, h, i, j] * layer.value_table.weight[at]
    torch.testing.assert_close(call.relative_values.attended(probs), expected)


@each_relation
@pytest.mark.parametrize("projections", ["own", "shared"])
def test_disentangled_terms_are_sums_over_the_pairs_rows(relation: Any, projections: str) -> None:
    buckets = {"name": "clipped", "max_distance": LIMIT}
    attention, call = call_of(
        "disentangled",
        relation,
        buckets=buckets,
        p2p=True,
        projections=projections,
        norm_table=False,
    )
    layer, mechanism = attention.attention, attention.stack.mechanisms["disentangled"]
    own = layer.position.parts["disentangled"]
    assert isinstance(mechanism, DisentangledAttention)
    assert isinstance(own, DisentangledLayer)
    of_keys, of_queries = (
        (own.position_key_proj, own.position_query_proj)
        if projections == "own"
        else (layer.key_proj, layer.query_proj)
    )
    table = mechanism.table.weight.tolist()
    key_rows, query_rows = linear(table, of_keys), linear(table, of_queries)
    query, key, scale = call.query.tolist(), call.key.tolist(), call.scale

    def total(
        i: int, j: int, h: int, product: Callable[[list[float], list[float]], float]
    ) -> float:
        rows = rows_of(relation, i, j, 2 * LIMIT, lambda at: max(0, min(at + LIMIT, 2 * LIMIT - 1)))
        parts = [[head_of(side[at], h, HEADS) for side in (key_rows, query_rows)] for at in rows]
        return scale * sum(product(*part) for part in parts)

    expected = {
        "c2p": loops(lambda b, h, i, j: total(i, j, h, lambda k, q: dot(query[b][h][i], k))),
        "p2c": loops(lambda b, h, i, j: total(i, j, h, lambda k, q: dot(q, key[b][h][j]))),
        "p2p": loops(lambda b, h, i, j: total(i, j, h, dot)),
    }
    assert_terms(call, expected)


def test_distances_that_are_never_negative_use_all_of_t5s_buckets_on_one_side() -> None:
    relation = DistanceRelation()
    attention, call = call_of("t5", relation, num_buckets=4, max_distance=3)
    mechanism = attention.stack.mechanisms["t5"]
    assert isinstance(mechanism, T5Bias)
    assert call.bias is not None
    exact = torch.tensor(GIVEN).clamp(min=0)  # 2 exact buckets, then one for 2 and one from 3 on
    expected = rearrange(mechanism.table.weight[exact], "q k h -> h q k")
    seen = torch.tensor(GIVEN) >= 0
    assert torch.equal(call.bias.materialize()[0].where(seen, 0.0), expected.where(seen, 0.0))


def test_a_pair_without_a_category_gets_nothing() -> None:
    _, call = call_of("t5", RELATIONS["categories"])
    assert call.bias is not None
    bias = call.bias.materialize()[0]
    assert not bias[:, torch.tensor(GIVEN) < 0].any()
    assert bias[:, torch.tensor(GIVEN) >= 0].all()


@pytest.mark.parametrize("name", ["alibi", "kerple", "mlp", "relative_logits", "transformer_xl"])
def test_given_distances_act_as_the_same_distances_on_a_line(name: str) -> None:
    case = MechanismCase(name)
    places = torch.tensor([[0, 3, 4, 9]])
    apart = places[:, :, None] - places[:, None]
    hidden = case.hidden(1, 4)
    line, given = case.attention(), case.attention(relation=DistanceRelation(signed=True))
    expected = line.call(hidden, hidden, line.prepared(places, places)).bias
    geometry = Geometry(torch.arange(4)[None], torch.arange(4)[None], given=GivenPairs(apart))
    found = given.call(hidden, hidden, given.stack.prepare(geometry, (), None)).bias
    assert expected is not None
    assert found is not None
    torch.testing.assert_close(found.materialize(), expected.materialize(), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("axes", ["split", "alternating", None])
@pytest.mark.parametrize("first", ["row", "column"])
def test_rope_turns_pairs_by_row_or_column_and_leaves_tokens_in_no_cell(
    axes: Literal["split", "alternating"] | None, first: Literal["row", "column"]
) -> None:
    relation = GridRelation(**GRID, outside=1, first=first)
    rope = RotaryPositions(RotaryConfig(axes=axes), EncoderDims(8, 1, relation=relation))
    places = torch.tensor([QUERIES])
    states = torch.randn(1, 1, 4, 8, generator=torch.Generator().manual_seed(0)).double()
    found = rope.rotate(Heads(states, states, states), rope.prepare(Geometry(places, places))).query
    for token, position in enumerate(QUERIES):
        row, column = divmod(position - 1, 4) if position else (0, 0)
        one, other = (row, column) if first == "row" else (column, row)
        powers = [0.0, 0.5, 0.25, 0.75] if axes == "alternating" else [0.0, 0.5, 0.0, 0.5]
        for pair, (along, power) in enumerate(zip([one, one, other, other], powers, strict=True)):
            angle = along * 10000.0**-power
            x, y = states[0, 0, token, [pair, pair + 4]].tolist()
            expected = [
                x * math.cos(angle) - y * math.sin(angle),
                y * math.cos(angle) + x * math.sin(angle),
            ]
            assert found[0, 0, token, [pair, pair + 4]].tolist() == pytest.approx(expected)


@pytest.mark.parametrize("first", ["row", "column"])
def test_sinusoids_of_both_axes_share_the_channels(first: Literal["row", "column"]) -> None:
    relation = GridRelation(**GRID, outside=1, first=first)
    ours = SinusoidalPositions(SinusoidalConfig(base=100.0), EncoderDims(8, 1, relation=relation))
    found = ours.embed(torch.zeros(1, 4, 8, dtype=torch.float64), torch.tensor([QUERIES]))
    assert not found[0, 0].any()  # in no cell
    for token, position in enumerate(QUERIES[1:], start=1):
        along = divmod(position - 1, 4)
        halves = along if first == "row" else along[::-1]
        expected = [
            turn(at * 100.0 ** (-step / 2))
            for at in halves
            for step in range(2)
            for turn in (math.sin, math.cos)
        ]
        assert found[0, token].tolist() == pytest.approx(expected)


@pytest.mark.parametrize("share", ["encoder", "layer"])
def test_the_network_reads_both_offsets_and_is_silent_beside_the_grid(share: str) -> None:
    attention, call = call_of("mlp", RELATIONS["factorised"], share=share, coordinate="log")
    network = (
        attention.stack.mechanisms["mlp"].network
        if share == "encoder"
        else attention.attention.position.parts["mlp"]
    )
    assert isinstance(network, DistanceNetwork)

    def term(b: int, h: int, i: int, j: int) -> float:
        query, key = QUERIES[i] - 1, KEYS[j] - 1
        if query < 0 or key < 0:
            return 0.0
        offsets = [query // 4 - key // 4, query % 4 - key % 4]
        read = [math.copysign(math.log1p(abs(offset)), offset) for offset in offsets]
        return float(network(torch.tensor([read], dtype=torch.float64))[h, 0])

    assert_terms(call, {"distance": loops(term)})


def test_a_learned_table_has_a_row_for_each_cell_and_token_in_front() -> None:
    relation = GridRelation(**GRID, outside=1)
    ours = LearnedPositions(LearnedConfig(max_positions=13), EncoderDims(8, 1, relation=relation))
    found = ours.embed(torch.zeros(1, 4, 8), torch.tensor([QUERIES]))
    assert torch.equal(found[0], ours.table.weight[QUERIES])
