"""Transformer-XL's relative positions against their formula; memory; causal and two-sided forms."""

import itertools
import math
from typing import Any

import pytest
import torch

from posattn.encoder.memory import SegmentMemory
from posattn.encoder.model import MaskedLanguageModel
from posattn.mechanisms import Geometry, TransformerXL
from posattn.mechanisms.transformer_xl import TransformerXLConfig, TransformerXLLayer
from posattn.testing.mechanism_case import MechanismCase

from .oracle import KEY_POSITIONS, QUERY_POSITIONS, assert_terms, dot, far_call, head_of, linear

HEADS = 2


def case_of(**options: Any) -> MechanismCase:
    return MechanismCase("transformer_xl", options, hidden_size=8, num_heads=HEADS)


def sinusoid(distance: int, width: int, base: float) -> list[float]:
    angles = [distance * base ** (-2 * t / width) for t in range(width // 2)]
    return [math.sin(angle) for angle in angles] + [math.cos(angle) for angle in angles]


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"untie": True},
        {"clamp_distance": 4, "base": 100.0},
        {"clamp_distance": 5, "untie": True, "bidirectional": False},
    ],
    ids=str,
)
def test_terms_b_c_and_d_are_the_formula_written_as_loops(options: dict[str, Any]) -> None:
    attention, call = far_call(case_of(**options))
    config, mechanism = case_of(**options).config, attention.stack.mechanisms["transformer_xl"]
    layer = attention.attention.position.parts["transformer_xl"]
    assert isinstance(config, TransformerXLConfig)
    assert isinstance(mechanism, TransformerXL)
    assert isinstance(layer, TransformerXLLayer)
    owner = layer if config.untie else mechanism
    content = owner.global_biases.content.weight.tolist()  # u
    relative = owner.global_biases.distance.weight.tolist()  # v
    query, key = call.query.tolist(), call.key.tolist()
    assert call.scale == pytest.approx(0.5)
    shape = (2, HEADS, len(QUERY_POSITIONS), len(KEY_POSITIONS))
    expected: dict[str, Any] = {name: torch.zeros(shape).tolist() for name in "bcd"}
    for b, h, i, j in itertools.product(*map(range, shape)):
        distance = QUERY_POSITIONS[i] - KEY_POSITIONS[j]
        if config.clamp_distance is not None:
            distance = max(-config.clamp_distance, min(config.clamp_distance, distance))
        row = linear([sinusoid(distance, 8, config.base)], layer.distance_proj)[0]
        projected = head_of(row, h, HEADS)
        expected["b"][b][h][i][j] = 0.5 * dot(query[b][h][i], projected)
        expected["c"][b][h][i][j] = 0.5 * dot(content[h], key[b][h][j])
        expected["d"][b][h][i][j] = 0.5 * dot(relative[h], projected)
    assert_terms(call, expected)


def test_the_causal_form_hides_later_keys_and_the_default_none() -> None:
    assert far_call(case_of())[1].visibility.pairs is None
    pairs = far_call(case_of(bidirectional=False))[1].visibility.pairs
    assert pairs is not None
    expected = [[key <= query for key in KEY_POSITIONS] for query in QUERY_POSITIONS]
    assert pairs[0, 0].tolist() == expected


def test_u_and_v_are_shared_by_all_layers_unless_untied() -> None:
    def count(**options: Any) -> int:
        return sum(
            "global_biases" in name for name, _ in case_of(**options).model().named_parameters()
        )

    assert count() == 2
    assert count(untie=True) == 4


def segments_of(model: MaskedLanguageModel, ids: torch.Tensor, size: int) -> torch.Tensor:
    """Return the hidden states of a text that is read segment by segment."""
    memory: SegmentMemory | None = None
    states = []
    for segment in ids.split(size, dim=1):
        output = model(segment, memory=memory)
        memory = output.memory
        states.append(output.hidden)
    return torch.cat(states, dim=1)


def test_causal_segments_with_a_long_memory_equal_one_long_text() -> None:
    model = case_of(bidirectional=False, memory_length=9).model()
    whole = case_of(bidirectional=False).model()
    ids = model_ids(9)
    torch.testing.assert_close(segments_of(model, ids, 3), whole(ids).hidden)


def test_two_sided_attention_sees_memory_on_the_left() -> None:
    """In one layer, a segment after a memory is the tail of the text that holds both."""
    changes = {"num_layers": 1}
    whole, ids = case_of().model(**changes), model_ids(7)
    for remembered in (1, 3, 4):
        model = case_of(memory_length=remembered).model(**changes)
        memory = model(ids[:, :4]).memory
        found = model(ids[:, 4:], memory=memory).hidden
        expected = whole(ids[:, 4 - remembered :]).hidden[:, remembered:]
        torch.testing.assert_close(found, expected)


def test_an_empty_memory_is_no_memory() -> None:
    model, ids = case_of(memory_length=5).model(), model_ids(4)
    torch.testing.assert_close(model(ids).hidden, case_of().model()(ids).hidden)
    assert model(ids).memory.length == 5
    assert case_of().model()(ids).memory is None


def test_memory_carries_no_gradient() -> None:
    memory = case_of(memory_length=5).model()(model_ids(4)).memory
    assert all(not state.requires_grad for state in memory.states)


def test_memory_changes_the_next_segment() -> None:
    model, ids = case_of(memory_length=4).model(), model_ids(4)
    memory = model(ids).memory
    assert not torch.allclose(model(ids, memory=memory).hidden, model(ids).hidden)


def model_ids(length: int) -> torch.Tensor:
    return case_of().ids(2, length)


QUERY_SEGMENTS, KEY_SEGMENTS = (
    [[0, 1, 2, 0], [1, 1, 0, 0]],
    [[0, 0, 1, 1, 2, 2], [1, 0, 0, 0, 0, 1]],
)


@pytest.mark.parametrize("untie", [False, True])
def test_term_e_is_the_formula_written_as_loops(untie: bool) -> None:
    attention = case_of(segment_term=True, untie=untie).attention()
    geometry = Geometry(
        torch.tensor([QUERY_POSITIONS]),
        torch.tensor([KEY_POSITIONS]),
        query_segments=torch.tensor(QUERY_SEGMENTS),
        key_segments=torch.tensor(KEY_SEGMENTS),
    )
    prepared = attention.stack.prepare(geometry, (), None)
    query_hidden = case_of().hidden(2, len(QUERY_POSITIONS))
    call = attention.call(query_hidden, case_of().hidden(2, len(KEY_POSITIONS)), prepared)
    layer = attention.attention.position.parts["transformer_xl"]
    owner = layer if untie else attention.stack.mechanisms["transformer_xl"]
    of_head = owner.global_biases.segment.weight.tolist()  # s
    same_or_not = layer.segments.weight.tolist()  # g
    query = call.query.tolist()
    shape = (2, HEADS, len(QUERY_POSITIONS), len(KEY_POSITIONS))
    expected = torch.zeros(shape, dtype=torch.float64)
    for b, h, i, j in itertools.product(*map(range, shape)):
        differs = QUERY_SEGMENTS[b][i] != KEY_SEGMENTS[b][j]
        g = head_of(same_or_not[int(differs)], h, HEADS)
        shifted = [q + s for q, s in zip(query[b][h][i], of_head[h], strict=True)]
        expected[b, h, i, j] = 0.5 * dot(shifted, g)
    assert call.bias is not None
    terms = call.bias.terms()
    assert list(terms) == ["b", "c", "d", "e"]
    torch.testing.assert_close(terms["e"], expected, rtol=1e-10, atol=1e-10)


def test_only_whether_segments_are_the_same_counts_and_without_ids_all_are() -> None:
    model, ids = case_of(segment_term=True).model(), model_ids(6)
    segments = torch.tensor([[0, 0, 1, 1, 1, 2], [0, 1, 1, 1, 0, 0]])
    found = model(ids, segments=segments).hidden
    assert not torch.allclose(found, model(ids).hidden)
    torch.testing.assert_close(found, model(ids, segments=9 - 4 * segments).hidden)
    torch.testing.assert_close(
        model(ids).hidden, model(ids, segments=torch.full_like(ids, 3)).hidden
    )
    plain = case_of().model()
    assert torch.equal(plain(ids, segments=segments).hidden, plain(ids).hidden)


def test_selected_places_have_their_own_segments() -> None:
    model, ids = case_of(segment_term=True).model(), model_ids(6)
    segments = torch.tensor([[0, 0, 1, 1, 1, 2], [0, 1, 1, 1, 0, 0]])
    selected = torch.tensor([[0, 1, 0, 0, 0, 1], [1, 0, 0, 1, 0, 0]]).bool()
    some = model(ids, segments=segments, selected=selected).hidden
    torch.testing.assert_close(some, model(ids, segments=segments).hidden[selected])


def test_what_is_remembered_counts_as_segment_0() -> None:
    options = {"segment_term": True, "memory_length": 3}
    model, ids = case_of(**options).model(num_layers=1), model_ids(7)
    memory = model(ids[:, :4], segments=torch.ones_like(ids[:, :4])).memory
    later = torch.tensor([[1, 0, 1], [0, 0, 1]])
    found = model(ids[:, 4:], segments=later, memory=memory).hidden
    whole = case_of(segment_term=True).model(num_layers=1)
    zeros = torch.zeros(2, 3, dtype=torch.long)
    expected = whole(ids[:, 1:], segments=torch.cat([zeros, later], dim=1)).hidden[:, 3:]
    torch.testing.assert_close(found, expected)


def test_a_wrapper_hands_segments_on() -> None:
    options = {"mechanism": {"name": "transformer_xl", "segment_term": True}}
    for name in ("randomized", "dape"):
        case = MechanismCase(name, options, hidden_size=8, num_heads=HEADS)
        model, ids = case.model(), model_ids(6)
        segments = torch.tensor([[0, 0, 1, 1, 1, 2], [0, 1, 1, 1, 0, 0]])
        assert not torch.allclose(model(ids, segments=segments).hidden, model(ids).hidden)


@torch.no_grad()
def test_backends_agree_on_the_segment_term() -> None:
    case = case_of(segment_term=True, untie=True)
    ids = model_ids(6)
    segments = torch.tensor([[0, 0, 1, 1, 1, 2], [0, 1, 1, 1, 0, 0]])
    eager = case.model(backend="eager")(ids, segments=segments).logits
    for name in [*case.able_backends(), "auto"]:
        torch.testing.assert_close(case.model(backend=name)(ids, segments=segments).logits, eager)
