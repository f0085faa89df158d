"""Disentangled attention against its formula, its scale, and its index tables."""

import itertools
import math
from typing import Any

import pytest
import torch
from pydantic import ValidationError

from posattn.bias import Padding
from posattn.mechanisms import (
    DisentangledAttention,
    DisentangledConfig,
    EncoderDims,
    LogBuckets,
)
from posattn.testing.mechanism_case import MechanismCase, PositionedAttention

from .oracle import (
    KEY_POSITIONS,
    QUERY_POSITIONS,
    Rows,
    assert_terms,
    dot,
    far_call,
    head_of,
    layer_norm,
    linear,
)

HEADS = 2
CLIPPED = {"name": "clipped", "max_distance": 3}
LOG = {"name": "log", "num_buckets": 4, "max_distance": 9}
DEBERTA_V3 = {"name": "log", "num_buckets": 256, "max_distance": 512}
TERMS = [
    dict(zip(("c2p", "p2c", "p2p"), switches, strict=True))
    for switches in itertools.product((True, False), repeat=3)
    if any(switches)
]


def case_of(**options: Any) -> MechanismCase:
    return MechanismCase("disentangled", options, hidden_size=8, num_heads=HEADS)


def row_of(distance: int, buckets: dict[str, Any]) -> int:
    """Return the table row as the paper, or the released code of v2 and v3, has it."""
    if buckets["name"] == "clipped":
        span = buckets["max_distance"]
        return 0 if distance <= -span else 2 * span - 1 if distance >= span else distance + span
    span, longest = buckets["num_buckets"], buckets["max_distance"]
    middle, size = span // 2, min(abs(distance), longest - 1)
    if size > middle:
        steps = math.log(size / middle) / math.log((longest - 1) / middle) * (middle - 1)
        size = middle + math.ceil(steps - 1e-9)
    return span + (size if distance > 0 else -size)


def projected_tables(
    attention: PositionedAttention, config: DisentangledConfig
) -> tuple[Rows, Rows]:
    """Return K_r and Q_r, as far as they are needed."""
    mechanism = attention.stack.mechanisms["disentangled"]
    assert isinstance(mechanism, DisentangledAttention)
    table: Rows = mechanism.table.weight.tolist()
    if config.norm_table:
        table = layer_norm(table, mechanism.table_norm)
    if config.projections == "shared":
        inner = attention.attention
        return linear(table, inner.key_proj), linear(table, inner.query_proj)
    own = dict(attention.attention.position.parts["disentangled"].named_children())
    nothing: Rows = []
    return (
        linear(table, own["position_key_proj"]) if "position_key_proj" in own else nothing,
        linear(table, own["position_query_proj"]) if "position_query_proj" in own else nothing,
    )


def loops(case: MechanismCase) -> None:
    """Compare every term with the formula, one number at a time."""
    attention, call = far_call(case)
    config = case.config
    assert isinstance(config, DisentangledConfig)
    buckets = config.buckets.model_dump()
    keys_r, queries_r = projected_tables(attention, config)
    query, key = call.query.tolist(), call.key.tolist()
    on = [name for name in ("c2p", "p2c", "p2p") if getattr(config, name)]
    divisor = math.sqrt((config.scale_terms or 1 + len(on)) * 4)
    assert call.scale == pytest.approx(1 / divisor)
    shape = (2, HEADS, len(QUERY_POSITIONS), len(KEY_POSITIONS))
    expected: dict[str, Any] = {name: torch.zeros(shape).tolist() for name in on}
    for b, h, i, j in itertools.product(*map(range, shape)):
        distance = QUERY_POSITIONS[i] - KEY_POSITIONS[j]
        there = row_of(distance, buckets)
        back = there if config.p2c_index == "reference" else row_of(-distance, buckets)
        key_row = head_of(keys_r[there], h, HEADS) if keys_r else []
        query_row = head_of(queries_r[back], h, HEADS) if queries_r else []
        for name in on:
            left = query[b][h][i] if name == "c2p" else query_row
            right = key[b][h][j] if name == "p2c" else key_row
            expected[name][b][h][i][j] = dot(left, right) / divisor
    assert_terms(call, expected)


@pytest.mark.parametrize("index", ["reference", "paper"])
@pytest.mark.parametrize("projections", ["own", "shared"])
@pytest.mark.parametrize("buckets", [CLIPPED, LOG], ids=["clipped", "log"])
@pytest.mark.parametrize("terms", TERMS, ids=lambda terms: "+".join(k for k in terms if terms[k]))
def test_every_term_is_the_formula_written_as_loops(
    terms: dict[str, bool], buckets: dict[str, Any], projections: str, index: str
) -> None:
    norm = terms["c2p"] == (buckets is LOG)  # both values with each bucket rule
    options = {"buckets": buckets, "projections": projections, "p2c_index": index}
    loops(case_of(**terms, **options, norm_table=norm))


def test_the_scale_can_be_held_while_terms_are_off() -> None:
    loops(case_of(p2c=False, scale_terms=3, buckets=LOG))
    loops(case_of(scale_terms=1, buckets=CLIPPED, projections="own"))


def test_the_published_table_is_the_formula_too() -> None:
    loops(case_of(buckets=DEBERTA_V3))
    loops(case_of(buckets={"name": "clipped", "max_distance": 512}, p2c_index="paper", p2p=True))


def test_the_two_p2c_indices_are_different_models() -> None:
    reference, paper = (
        far_call(case_of(buckets=LOG))[1],
        far_call(case_of(buckets=LOG, p2c_index="paper"))[1],
    )
    assert reference.bias is not None
    assert paper.bias is not None
    assert torch.equal(reference.bias.terms()["c2p"], paper.bias.terms()["c2p"])
    assert not torch.allclose(reference.bias.terms()["p2c"], paper.bias.terms()["p2c"])


@pytest.mark.parametrize(
    ("options", "divisor"),
    [
        ({"p2c": False}, 11.3137),
        ({}, 13.8564),
        ({"p2p": True}, 16.0),
        ({"p2c": False, "scale_terms": 3}, 13.8564),
        ({"scale_terms": 1}, 8.0),
    ],
)
def test_a_zero_table_leaves_the_content_score_over_the_divisor(
    options: dict[str, Any], divisor: float
) -> None:
    """With q = k = 1 and 64 channels per head the score is 64 over the divisor."""
    case = MechanismCase("disentangled", options, hidden_size=64, num_heads=1)
    attention = case.attention()
    with torch.no_grad():
        for parameter in attention.parameters():
            parameter.zero_()
        for projection in (attention.attention.query_proj, attention.attention.key_proj):
            projection.weight.copy_(torch.eye(64))
    ones, positions = torch.ones(1, 3, 64, dtype=torch.float64), torch.arange(3)[None]
    call = attention.call(ones, ones, attention.prepared(positions, positions))
    assert call.bias is not None
    assert not call.bias.materialize().any()
    content = (call.query * call.scale) @ call.key.mT
    assert content.flatten().tolist() == pytest.approx([64 / divisor] * 9, rel=1e-5)


def test_switching_every_term_off_is_refused() -> None:
    with pytest.raises(ValidationError, match="use 'none'"):
        DisentangledConfig(c2p=False, p2c=False)


def test_log_buckets_without_room_are_refused() -> None:
    with pytest.raises(ValidationError, match="no room"):
        LogBuckets(num_buckets=256, max_distance=128)


def test_past_the_end_transformers_reads_row_0_to_the_right_and_the_last_row_to_the_left() -> None:
    """Distance 1000 of v3 is row 511 in both codes; -1000 is row 1 in Microsoft's and the untrained 0."""
    distance = torch.tensor([1000, -1000])
    rows = {}
    for code in ("held", "growing"):
        buckets = LogBuckets(num_buckets=256, max_distance=512, beyond=code)
        rows[code] = (buckets.signed(distance) + 256).clamp(0, 511).tolist()
    assert rows == {"held": [511, 1], "growing": [511, 0]}


def test_a_key_bias_needs_a_projection_of_its_own() -> None:
    for options in ({}, {"projections": "own", "c2p": False}):
        with pytest.raises(ValidationError, match="key_bias belongs to the own projection"):
            DisentangledConfig(key_bias=True, **options)


@torch.no_grad()
def test_a_key_bias_moves_all_logits_of_a_query_alike() -> None:
    case = MechanismCase(
        "disentangled", {"projections": "own", "key_bias": True}, hidden_size=8, num_heads=2
    )
    attention, positions = case.attention(), torch.arange(5)[None]
    hidden = case.hidden(1, 5)
    before = attention.call(hidden, hidden, attention.prepared(positions, positions)).bias
    layer = attention.attention.position.parts["disentangled"]
    layer.position_key_proj.bias.add_(1.0)
    after = attention.call(hidden, hidden, attention.prepared(positions, positions)).bias
    assert before is not None
    assert after is not None
    moved = after.materialize() - before.materialize()
    assert float(moved.abs().max()) > 1e-2
    torch.testing.assert_close(moved, moved[..., :1].expand_as(moved))


@pytest.mark.parametrize(("num_queries", "num_keys"), [(3, 5), (5, 3), (1, 6)])
def test_queries_and_keys_may_differ_in_number(num_queries: int, num_keys: int) -> None:
    """Rows of the small call are the rows of the whole one; positions are the last of the longer."""
    case = MechanismCase("disentangled", {"buckets": LOG}, hidden_size=8, num_heads=2)
    attention, longest = case.attention(), max(num_queries, num_keys)
    hidden, positions = case.hidden(1, longest), torch.arange(longest)[None]
    whole = attention.call(hidden, hidden, attention.prepared(positions, positions)).bias
    some = attention.call(
        hidden[:, -num_queries:],
        hidden[:, -num_keys:],
        attention.prepared(positions[:, -num_queries:], positions[:, -num_keys:]),
    ).bias
    assert whole is not None
    assert some is not None
    expected = whole.materialize()[:, :, -num_queries:, -num_keys:]
    torch.testing.assert_close(some.materialize(), expected, rtol=0, atol=1e-10)


@pytest.mark.parametrize("projections", ["own", "shared"])
@pytest.mark.parametrize("backend", ["eager", "sdpa"])
def test_scores_of_forties_in_half_precision_are_finite(projections: str, backend: str) -> None:
    """64 x 40 x 40 is 102400, infinite in float16; each scaled term is 7390."""
    options = {"projections": projections, "norm_table": False, "buckets": LOG}
    case = MechanismCase("disentangled", options, hidden_size=64, num_heads=1)
    attention = case.attention(backend=backend)
    with torch.no_grad():
        for name, parameter in attention.named_parameters():
            if name.endswith("proj.weight"):
                parameter.copy_(torch.eye(64))
            elif name.endswith("table.weight"):
                parameter.fill_(40.0)
            else:
                parameter.zero_()
    attention.half()
    hidden, positions = torch.full((1, 4, 64), 40.0).half(), torch.arange(4)[None]
    keys = torch.tensor([[True, True, True, False]])
    prepared = attention.prepared(positions, positions, Padding(keys))
    call = attention.call(hidden, hidden, prepared)
    assert call.bias is not None
    terms = {"c2c": (call.query * call.scale) @ call.key.mT, **call.bias.terms()}
    for term in terms.values():
        assert term.flatten().tolist() == pytest.approx([102400 / 13.8564] * 16, rel=2e-3)
    attended = attention(hidden, hidden, prepared)
    assert attended.flatten().tolist() == pytest.approx([40.0] * 256, rel=2e-3)


def test_only_needed_projections_exist() -> None:
    dims = EncoderDims(8, 2)

    def names(**options: Any) -> list[str]:
        config = DisentangledConfig.model_validate({"projections": "own", **options})
        layer = DisentangledAttention(config, dims).make_layer()
        return sorted(name for name, _ in layer.named_parameters())

    key, query = (
        ["position_key_proj.weight"],
        [
            "position_query_proj.bias",
            "position_query_proj.weight",
        ],
    )
    assert names() == key + query
    assert names(p2c=False) == key
    assert names(c2p=False) == query
    assert names(c2p=False, p2c=False, p2p=True) == key + query
    assert names(projections="shared") == []


def test_dropout_acts_on_the_table_afresh_in_every_layer_and_only_in_training() -> None:
    case = MechanismCase("disentangled", {"table_dropout": 0.5}, hidden_size=8, num_heads=2)
    attention = case.attention()
    hidden, positions = case.hidden(1, 5), torch.arange(5)[None]

    def bias() -> torch.Tensor:
        found = attention.call(hidden, hidden, attention.prepared(positions, positions)).bias
        assert found is not None
        return found.materialize()

    assert torch.equal(bias(), bias())
    attention.train()
    assert not torch.equal(bias(), bias())
    with torch.no_grad():
        assert not torch.equal(bias(), bias())


def test_the_card_states_buckets_terms_index_and_scale() -> None:
    card = case_of(scale_terms=5, p2c_index="paper").config.card(EncoderDims(64, 4))
    text = "\n".join(card.values())
    for fact in (
        "256 per direction",
        "alike from",
        "c2c, c2p, p2c",
        "j - i",
        "5 x 16",
        "held fixed",
    ):
        assert fact in text
