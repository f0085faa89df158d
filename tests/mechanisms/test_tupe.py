"""TUPE-A and TUPE-R against their formula and the authors' numbers; [CLS]; what is shared."""

import itertools
import math
from typing import Any

import pytest
import torch
from pydantic import ValidationError

from posattn.errors import IncompatibleParts
from posattn.mechanisms import EncoderDims, Geometry, Tupe, TupeConfig
from posattn.testing.mechanism_case import MechanismCase

from .golden import golden
from .oracle import (
    KEY_POSITIONS,
    QUERY_POSITIONS,
    assert_terms,
    dot,
    far_call,
    head_of,
    layer_norm,
    linear,
)

HEADS = 2
RELATIVE = {"num_buckets": 6, "max_distance": 11}


def case_of(**options: Any) -> MechanismCase:
    options = {"max_positions": 1001, **options}
    return MechanismCase("tupe", options, hidden_size=8, num_heads=HEADS)


def bucket_of(query: int, key: int, untied: bool) -> int:
    """Return the row of the relative table with six buckets and distances alike from 11 on."""
    if untied and query == 0:
        return 3
    if untied and key == 0:
        return 6
    size, first = abs(query - key), 3 if key > query else 0
    return first + (0 if size == 0 else min(1 + math.floor(math.log(size) / math.log(11) * 2), 2))


@pytest.mark.parametrize("relative", [None, RELATIVE], ids=["absolute", "relative"])
@pytest.mark.parametrize("untied", [True, False])
def test_the_terms_are_the_formula_written_as_loops(
    untied: bool, relative: dict[str, int] | None
) -> None:
    attention, call = far_call(case_of(untie_cls=untied, relative=relative))
    mechanism = attention.stack.mechanisms["tupe"]
    assert isinstance(mechanism, Tupe)
    assert call.scale == pytest.approx(1 / math.sqrt(2 * 4))
    rows = layer_norm(mechanism.table.weight.tolist(), mechanism.table_norm)
    queries, keys = linear(rows, mechanism.query_proj), linear(rows, mechanism.key_proj)

    def product(head: int, query: int, key: int) -> float:
        left, right = (head_of(row, head, HEADS) for row in (queries[query], keys[key]))
        return dot(left, right) / math.sqrt(2 * 4)

    shape = (HEADS, len(QUERY_POSITIONS), len(KEY_POSITIONS))
    absolute: Any = torch.zeros(shape).tolist()
    added: Any = torch.zeros(shape).tolist()
    for h, i, j in itertools.product(*map(range, shape)):
        query, key = QUERY_POSITIONS[i], KEY_POSITIONS[j]
        if not untied:
            absolute[h][i][j] = product(h, query, key)
        elif query == 0:
            absolute[h][i][j] = product(h, 0, 0)
        elif key == 0:
            absolute[h][i][j] = product(h, 1, 1)
        else:
            absolute[h][i][j] = product(h, query + 1, key + 1)
        if relative:
            bucket = bucket_of(query, key, untied)
            added[h][i][j] = mechanism.buckets.weight[bucket, h].item()
    expected = {"p2p": [absolute, absolute]}
    if relative:
        expected["relative"] = [added, added]
    assert_terms(call, expected)


@pytest.mark.parametrize("kind", ["absolute", "relative"])
def test_the_bias_is_that_of_the_authors_code(kind: str) -> None:
    known = golden("tupe")[kind]
    weights = {name: torch.tensor(value).double() for name, value in known["weights"].items()}
    expected = torch.tensor(known["bias"]).double()
    heads, length = expected.shape[:2]
    relative = {"num_buckets": 8, "max_distance": 6} if kind == "relative" else None
    config = TupeConfig(max_positions=length, relative=relative)
    size = weights["pos.weight"].shape[1]
    mechanism = Tupe(config, EncoderDims(size, heads, norm_eps=1e-5)).double()
    names = {
        "pos": "table",
        "pos_ln": "table_norm",
        "pos_q_linear": "query_proj",
        "pos_k_linear": "key_proj",
        "relative_attention_bias": "buckets",
    }
    renamed = {}
    for name, value in weights.items():
        module, part = name.rsplit(".", 1)
        renamed[f"{names[module]}.{part}"] = value
    mechanism.load_state_dict(renamed, strict=True)
    positions = torch.arange(length)[None]
    bias = mechanism.prepare(Geometry(positions, positions)).bias
    assert bias is not None
    torch.testing.assert_close(bias.materialize()[0].detach(), expected, rtol=1e-5, atol=1e-6)


def test_positions_are_projected_once_per_forward_by_weights_that_all_layers_share() -> None:
    case = case_of(max_positions=9, relative=RELATIVE)
    model = case.model(num_layers=3).train()
    names = [n for n, _ in model.named_parameters() if "position" in n]
    assert all(n.startswith("encoder.position.mechanisms.tupe.") for n in names)
    calls = []
    tupe = model.encoder.position.owned()["tupe"]
    assert isinstance(tupe, Tupe)
    tupe.query_proj.register_forward_hook(lambda *_: calls.append(1))
    model(case.ids(2, 6))
    assert len(calls) == 1


def test_evaluation_remembers_the_scores_of_each_length_only_until_a_weight_changes() -> None:
    case = case_of(max_positions=9)
    model, ids, calls = case.model(), case.ids(1, 6), []
    tupe = model.encoder.position.owned()["tupe"]
    assert isinstance(tupe, Tupe)
    tupe.key_proj.register_forward_hook(lambda *_: calls.append(1))
    with torch.no_grad():
        model(ids)
        model(ids)
        assert len(calls) == 1
        model(ids[:, :3])
        assert len(calls) == 2
        tupe.table.weight.mul_(2.0)
        model(ids[:, :3])
        assert len(calls) == 3


def test_the_first_token_has_one_number_to_all_and_all_others_one_to_it() -> None:
    attention, hidden = case_of(max_positions=6).attention(), case_of().hidden(1, 6)
    positions = torch.arange(6)[None]
    bias = attention.call(hidden, hidden, attention.prepared(positions, positions)).bias
    assert bias is not None
    found = bias.materialize()[0]
    assert bool((found[:, 0] == found[:, 0, :1]).all())
    assert bool((found[:, 1:, 0] == found[:, 1:2, 0]).all())
    assert bool((found[:, 0, 0] != found[:, 1, 0]).all())
    assert found[:, 1:, 1:].unique().numel() == HEADS * 25


@pytest.mark.parametrize(("untied", "rows"), [(True, 10), (False, 9)])
def test_a_position_past_the_table_is_refused_with_both_numbers(untied: bool, rows: int) -> None:
    config = TupeConfig(max_positions=9, untie_cls=untied)
    mechanism = Tupe(config, EncoderDims(8, 2))
    assert mechanism.table.num_embeddings == rows
    far = torch.tensor([[0, 9]])
    with pytest.raises(IncompatibleParts, match=r"position 9 is past .* 0 to 8"):
        mechanism.prepare(Geometry(far, far))
    case = case_of(max_positions=9, untie_cls=untied)
    with pytest.raises(IncompatibleParts, match="10"):
        case.model()(torch.ones(1, 10, dtype=torch.long))


def test_keys_of_segment_memory_which_lie_before_the_table_are_refused() -> None:
    memory = {"name": "transformer_xl", "memory_length": 4}
    model = case_of(max_positions=9).model(mechanism=[{"name": "tupe"}, memory])
    ids = case_of(max_positions=9).ids(1, 5)
    with pytest.raises(IncompatibleParts, match="segment memory"):
        model(ids, memory=model(ids).memory)


@pytest.mark.parametrize(
    "relative", [{"num_buckets": 7}, {"num_buckets": 2}, {"num_buckets": 16, "max_distance": 4}]
)
def test_buckets_that_do_not_fit_are_refused(relative: dict[str, int]) -> None:
    with pytest.raises(ValidationError):
        TupeConfig(relative=relative)


def test_the_card_tells_scale_terms_and_cls() -> None:
    card = TupeConfig(relative={}).card(EncoderDims(16, 4))
    assert card["scale"] == "1 / sqrt(2 x 4)"
    assert card["terms"] == "c2c, p2p, relative"
    assert card["relative buckets"] == "32, alike from 128 on"
    assert card["positions"] == "learned table of 513 rows, takes 512 tokens"
    assert "as any token" in TupeConfig(untie_cls=False).card(EncoderDims(16, 4))["[CLS]"]
