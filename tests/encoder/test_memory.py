from typing import Any

import pytest
import torch
from torch import Tensor
from torch.nn import functional

from posattn.backends import AttentionCall, EagerBackend
from posattn.bias import Causal, Visibility
from posattn.encoder.memory import SegmentMemory, empty_memory
from posattn.encoder.model import MaskedLanguageModel, ModelOutput
from posattn.errors import IncompatibleParts
from posattn.mechanisms import Geometry

from .small_models import ids, largest, model

REMEMBERS = [
    {"name": "transformer_xl"},
    {"name": "transformer_xl", "bidirectional": False},
    {"name": "transformer_xl", "clamp_distance": 2},
]


def remembering(length: int, options: Any = None, **rest: Any) -> MaskedLanguageModel:
    options = options or {"name": "transformer_xl"}
    return model(options | {"memory_length": length}, **rest)


def run(made: MaskedLanguageModel, segments: list[Tensor], **inputs: Any) -> list[ModelOutput]:
    memory, outputs = None, []
    for segment in segments:
        outputs.append(made(segment, memory=memory, **inputs))
        memory = outputs[-1].memory
    return outputs


@torch.no_grad()
@pytest.mark.parametrize("options", REMEMBERS, ids=str)
def test_streams_of_unequal_length_equal_each_stream_alone(options: dict[str, Any]) -> None:
    made = remembering(5, options)
    streams = {
        name: [ids(1, 4, seed=10 * index + part) for part in range(count)]
        for index, (name, count) in enumerate({"A": 3, "B": 2, "C": 1}.items())
    }
    alone = {name: run(made, segments) for name, segments in streams.items()}
    memory, running = None, ["A", "B", "C"]
    for part in range(3):
        staying = [name for name in running if len(streams[name]) > part]
        if memory is not None and staying != running:
            memory = memory.select(torch.tensor([running.index(name) for name in staying]))
        running = staying
        output = made(torch.cat([streams[name][part] for name in running]), memory=memory)
        memory = output.memory
        for row, name in enumerate(running):
            expected = alone[name][part].logits[0]
            assert largest(output.logits[row], expected) < 1e-6 * max(1, expected.abs().max())
    assert running == ["A"]


@torch.no_grad()
def test_rows_of_memory_in_another_order_are_other_streams() -> None:
    made = remembering(3)
    first, second = ids(2, 4), ids(2, 4, seed=1)
    memory = made(first).memory
    straight = made(second, memory=memory).logits
    crossed = made(second, memory=memory.select(torch.tensor([1, 0]))).logits
    assert largest(straight, crossed) > 1e-2
    back = made(second.flip(0), memory=memory.select(torch.tensor([1, 0]))).logits.flip(0)
    torch.testing.assert_close(back, straight)


@torch.no_grad()
@pytest.mark.parametrize("options", REMEMBERS, ids=str)
def test_the_first_segment_equals_an_encoder_without_memory(options: dict[str, Any]) -> None:
    with_memory, without = remembering(5, options), model(options)
    without.load_state_dict(with_memory.state_dict())
    tokens = ids(2, 6)
    visible = torch.tensor([[True] * 6, [False] * 2 + [True] * 3 + [False]])
    first = with_memory(tokens, visible=visible).logits[visible]
    assert largest(first, without(tokens, visible=visible).logits[visible]) < 1e-5
    assert without(tokens).memory is None


@torch.no_grad()
def test_later_segments_do_see_the_memory() -> None:
    made = remembering(5)
    tokens = ids(1, 6)
    fresh = made(tokens).logits
    assert largest(run(made, [ids(1, 6, seed=1), tokens])[1].logits, fresh) > 1e-2
    assert largest(run(made, [ids(1, 6, seed=2), tokens])[1].logits, fresh) > 1e-2


@torch.no_grad()
@pytest.mark.parametrize("num_layers", [1, 3])
def test_causal_segments_equal_one_long_causal_run_if_memory_reaches_back(num_layers: int) -> None:
    options = {"name": "transformer_xl", "bidirectional": False}
    made = remembering(9, options, num_layers=num_layers)
    tokens = ids(2, 12)
    parts = run(made, list(tokens.split([5, 4, 3], dim=1)))
    joined = torch.cat([part.logits for part in parts], dim=1)
    assert largest(joined, made(tokens).logits) < 2e-5


@torch.no_grad()
def test_in_both_directions_the_last_segment_of_one_layer_equals_the_long_run() -> None:
    made = remembering(9, num_layers=1)
    tokens = ids(2, 9)
    parts = run(made, list(tokens.split([5, 4], dim=1)))
    whole = made(tokens).logits
    assert largest(parts[1].logits, whole[:, 5:]) < 2e-5
    assert largest(parts[0].logits, whole[:, :5]) > 1e-2  # it could not see what came later


@torch.no_grad()
@pytest.mark.parametrize("length", [2, 5, 20])
@pytest.mark.parametrize("side", ["left", "right"])
def test_padding_of_a_segment_changes_nothing_for_the_next(length: int, side: str) -> None:
    made = remembering(length)
    first, second, third = ids(1, 4), ids(1, 3, seed=1), ids(1, 5, seed=2)
    plain = run(made, [first, second, third])
    pads = (3, 0) if side == "left" else (0, 3)
    padded = functional.pad(second, pads)
    visible = functional.pad(torch.ones_like(second), pads).bool()
    memory = made(first).memory
    middle = made(padded, visible=visible, memory=memory)
    assert largest(middle.logits[visible], plain[1].logits[0]) < 1e-5
    assert largest(made(third, memory=middle.memory).logits, plain[2].logits) < 1e-5
    seen = middle.memory.visible
    assert middle.memory.positions[seen].tolist() == plain[1].memory.positions[seen].tolist()


@torch.no_grad()
def test_a_fully_padded_segment_leaves_the_memory_as_it_was() -> None:
    made = remembering(4)
    before = made(ids(2, 6)).memory
    visible = torch.tensor([[True] * 3, [False] * 3])
    after = made(ids(2, 3, seed=1), visible=visible, memory=before).memory
    for old, new in zip(before.states, after.states, strict=True):
        assert torch.equal(old[1], new[1])
        assert not torch.equal(old[0], new[0])
    assert after.positions.tolist() == [[-4, -3, -2, -1]] * 2


@torch.no_grad()
def test_given_positions_with_an_offset_change_nothing() -> None:
    made = remembering(9)
    segments = [ids(2, 4, seed=seed) for seed in range(3)]
    plain = run(made, segments)
    moved = run(made, segments, positions=torch.arange(4)[None] + 100)
    for one, other in zip(plain, moved, strict=True):  # the third one's memory spans two segments
        assert largest(one.logits, other.logits) < 1e-5
    visible = torch.tensor([[True] * 4, [False, False, True, True]])
    positions = torch.tensor([[7, 8, 9, 10], [-1, -1, 50, 51]])
    expected = made(segments[1], visible=visible, memory=plain[0].memory).logits
    given = made(segments[1], visible=visible, positions=positions, memory=plain[0].memory).logits
    assert largest(expected[visible], given[visible]) < 1e-5


@torch.no_grad()
def test_positions_in_memory_count_back_over_several_segments() -> None:
    made = remembering(6)
    outputs = run(made, [ids(1, 3), ids(1, 2, seed=1)])
    assert outputs[0].memory.positions.tolist() == [[-6, -5, -4, -3, -2, -1]]
    assert outputs[0].memory.visible.tolist() == [[False] * 3 + [True] * 3]
    assert outputs[1].memory.positions[0, 1:].tolist() == [-5, -4, -3, -2, -1]
    assert outputs[1].memory.visible.tolist() == [[False] + [True] * 5]


def test_gradients_stop_at_the_segment() -> None:
    made = remembering(4)
    memory = made(ids(1, 5)).memory
    assert not any(state.requires_grad for state in memory.states)


@torch.no_grad()
def test_a_forgotten_stream_starts_anew_and_the_others_go_on() -> None:
    made = remembering(4)
    memory = made(ids(2, 5)).memory
    tokens = ids(2, 5, seed=1)
    going_on, fresh = made(tokens, memory=memory).logits, made(tokens).logits
    mixed = made(tokens, memory=memory.forget(torch.tensor([True, False]))).logits
    assert largest(mixed[0], fresh[0]) < 1e-6
    assert torch.equal(mixed[1], going_on[1])


@torch.no_grad()
@pytest.mark.parametrize("decode", ["plain", "emd"])
def test_decoding_selected_places_with_memory_equals_decoding_all(decode: str) -> None:
    made = remembering(4, decode=decode)
    memory = made(ids(2, 5)).memory
    tokens, selected = ids(2, 5, seed=1), torch.zeros(2, 5, dtype=torch.bool)
    selected[0, [1, 4]] = selected[1, 2] = True
    some = made(tokens, memory=memory, selected=selected)
    everything = made(tokens, memory=memory)
    assert largest(some.logits, everything.logits[selected]) < 1e-5
    for one, other in zip(some.memory.states, everything.memory.states, strict=True):
        assert torch.equal(one, other)


def test_a_causal_layer_with_memory_aligns_the_triangle_at_the_lower_right() -> None:
    geometry = Geometry(torch.tensor([[3, 4]]), torch.arange(5)[None])
    value = torch.arange(5.0).reshape(1, 1, 5, 1)
    call = AttentionCall(
        query=torch.zeros(1, 1, 2, 1),
        key=torch.zeros(1, 1, 5, 1),
        value=value,
        scale=1.0,
        visibility=Visibility((Causal(geometry.distance),)),
    )
    assert EagerBackend().attend(call).flatten().tolist() == [1.5, 2.0]


@torch.no_grad()
@pytest.mark.parametrize("backend", ["eager", "sdpa", "auto"])
def test_the_causal_encoder_with_memory_of_three_sees_what_it_should(backend: str) -> None:
    options = {"name": "transformer_xl", "bidirectional": False}
    made = remembering(3, options, backend=backend, num_layers=1)
    pairs: list[Any] = []
    memory = made(ids(1, 3)).memory
    made(ids(1, 2), memory=memory, observer=lambda call, term: pairs.append(call.visibility.pairs))
    assert pairs[0][0, 0].tolist() == [[True] * 4 + [False], [True] * 5]


def test_memory_for_another_batch_size_is_refused_with_both_numbers() -> None:
    made = remembering(4)
    memory = made(ids(3, 5)).memory
    with pytest.raises(IncompatibleParts, match=r"memory of 3 streams.*batch of 2.*select"):
        made(ids(2, 5), memory=memory)


def test_memory_for_a_model_without_any_is_refused() -> None:
    memory = remembering(4)(ids(2, 5)).memory
    with pytest.raises(IncompatibleParts, match="no mechanism of this encoder has memory"):
        model("rope")(ids(2, 5), memory=memory)


def test_documents_packed_into_rows_have_no_memory() -> None:
    documents = torch.zeros(2, 5, dtype=torch.long)
    with pytest.raises(IncompatibleParts, match="memory belongs to one stream"):
        remembering(4)(ids(2, 5), documents=documents)


def test_an_empty_memory_has_seen_nothing() -> None:
    memory = empty_memory(2, 3, num_layers=4, hidden_size=5, dtype=torch.float64)
    assert isinstance(memory, SegmentMemory)
    assert memory.length == 3
    assert [state.shape for state in memory.states] == [(2, 3, 5)] * 4
    assert memory.states[0].dtype == torch.float64
    assert not memory.visible.any()
    assert memory.positions.tolist() == [[-3, -2, -1]] * 2
