from typing import Any

import pytest
import torch
from torch.nn import functional

from posattn.backends import AttentionCall
from posattn.errors import IncompatibleParts

from .small_models import HIDDEN, MECHANISMS, ids, largest, model

LENGTH = 8


@torch.no_grad()
def test_embeddings_are_tokens_segments_and_positions_summed_then_normed() -> None:
    made = model("learned", segments=3).encoder
    tokens = ids(2, LENGTH)
    kinds = torch.arange(LENGTH).expand(2, -1) % 3
    context = made.begin(tokens)
    table = made.position.mechanisms["learned"].table.weight
    summed = made.tokens.weight[tokens] + made.segments.weight[kinds] + table[:LENGTH]
    expected = functional.layer_norm(
        summed, (HIDDEN,), made.embedding_norm.weight, made.embedding_norm.bias, 1e-12
    )
    torch.testing.assert_close(made.embed(tokens, kinds, context), expected)


@torch.no_grad()
def test_narrow_tables_can_be_summed_and_normed_before_they_are_projected() -> None:
    options = {"segments": 3, "embedding_size": 6, "embedding_projection": "sum"}
    made = model("learned", **options).encoder
    assert made.segments.weight.shape == (3, 6)
    assert made.embedding_norm.weight.shape == (6,)
    tokens, kinds = ids(2, LENGTH), torch.arange(LENGTH).expand(2, -1) % 3
    made.embedding_proj.bias.normal_()
    normed = functional.layer_norm(
        made.tokens.weight[tokens] + made.segments.weight[kinds],
        (6,),
        made.embedding_norm.weight,
        made.embedding_norm.bias,
        1e-12,
    )
    projected = functional.linear(normed, made.embedding_proj.weight, made.embedding_proj.bias)
    expected = projected + made.position.mechanisms["learned"].table.weight[:LENGTH]
    torch.testing.assert_close(made.embed(tokens, kinds, made.begin(tokens)), expected)


@torch.no_grad()
def test_tokens_can_be_scaled_by_the_root_of_the_hidden_size_before_positions_are_added() -> None:
    made = model("sinusoidal", embedding_scale="sqrt_hidden", embedding_norm=False).encoder
    tokens = ids(1, LENGTH)
    context = made.begin(tokens)
    plain = model("sinusoidal", embedding_norm=False).encoder
    positions = plain.embed(tokens, None, context) - plain.tokens(tokens)
    expected = made.tokens(tokens) * HIDDEN**0.5 + positions
    torch.testing.assert_close(made.embed(tokens, None, context), expected)


@torch.no_grad()
def test_swapping_rows_of_a_segment_table_of_two_changes_the_output() -> None:
    made = model("rope", segments=2)
    tokens, kinds = ids(1, 3), torch.tensor([[0, 0, 1]])
    before = made(tokens, segments=kinds).logits
    made.encoder.segments.weight.copy_(made.encoder.segments.weight.flip(0))
    swapped = made(tokens, segments=kinds).logits
    assert largest(before, swapped) > 1e-2
    assert largest(before, made(tokens, segments=1 - kinds).logits) < 1e-6


@torch.no_grad()
def test_without_a_segment_table_ids_change_nothing() -> None:
    made = model("rope", segments=0)
    tokens = ids(1, 3)
    with_ids = made(tokens, segments=torch.tensor([[0, 0, 1]])).logits
    assert torch.equal(with_ids, made(tokens).logits)
    assert not any("segments" in name for name, _ in made.named_parameters())


def test_missing_segment_ids_for_a_table_are_an_error_that_says_what_to_pass() -> None:
    with pytest.raises(IncompatibleParts, match=r"segment table of 2 rows.*pass zeros"):
        model("rope", segments=2)(ids(1, 3))


@torch.no_grad()
@pytest.mark.parametrize("name", MECHANISMS)
def test_packed_documents_equal_separate_runs(name: str) -> None:
    made = model(MECHANISMS[name])
    tokens = ids(2, 9)
    documents = torch.tensor([[0, 0, 0, 0, 1, 1, 2, 2, 2], [7, 7, 7, 7, 7, 7, 7, 7, 8]])
    packed = made(tokens, documents=documents).logits
    for row in range(2):
        for document in documents[row].unique():
            inside = documents[row] == document
            alone = made(tokens[row, inside][None]).logits[0]
            assert largest(packed[row, inside], alone) < 1e-6 * max(1.0, float(alone.abs().max()))
    apart = made(tokens).logits
    assert largest(packed, apart) > 1e-3


@torch.no_grad()
@pytest.mark.parametrize("decode", ["plain", "emd"])
def test_packed_documents_with_padding_and_selected_places_equal_separate_runs(decode: str) -> None:
    made = model("disentangled", decode)
    tokens = ids(1, 9)
    documents = torch.tensor([[0, 0, 0, 0, 1, 1, 1, 1, 1]])
    visible = torch.tensor([[False, True, True, True, True, True, True, False, False]])
    selected = torch.tensor([[False, False, True, True, False, True, False, False, False]])
    packed = made(tokens, documents=documents, visible=visible, selected=selected).logits
    first = made(tokens[:, 1:4], selected=selected[:, 1:4]).logits
    second = made(tokens[:, 4:7], selected=selected[:, 4:7]).logits
    assert largest(packed, torch.cat([first, second])) < 1e-5


@torch.no_grad()
@pytest.mark.parametrize("side", ["left", "right", "both"])
@pytest.mark.parametrize("name", MECHANISMS)
def test_real_tokens_do_not_depend_on_padding_nor_on_what_it_holds(name: str, side: str) -> None:
    made = model(MECHANISMS[name])
    tokens = ids(2, 4)
    left, right = {"left": (3, 0), "right": (0, 3), "both": (1, 2)}[side]
    padded = functional.pad(tokens, (left, right), value=1)
    visible = functional.pad(torch.ones_like(tokens), (left, right)).bool()
    alone = made(tokens).logits
    scale = max(1.0, float(alone.abs().max()))
    for filler in (1, 2):
        ours = made(padded.masked_fill(~visible, filler), visible=visible).logits
        assert largest(ours[visible], alone.flatten(0, 1)) < 1e-5 * scale


@pytest.mark.parametrize("name", MECHANISMS)
def test_a_nan_in_the_padding_row_reaches_no_real_token_and_no_gradient(name: str) -> None:
    made = model(MECHANISMS[name])
    tokens = ids(2, LENGTH)
    visible = torch.ones(2, LENGTH, dtype=torch.bool)
    visible[1, 5:] = False
    tokens = tokens.masked_fill(~visible, 0)
    tokens[visible & (tokens == 0)] = 1
    with torch.no_grad():
        made.encoder.tokens.weight[0] = torch.nan
    states = made.encoder(tokens, visible=visible)[visible]
    states.square().sum().backward()
    assert bool(states.isfinite().all())
    gradients = [p.grad for p in made.encoder.parameters() if p.grad is not None]
    assert all(bool(gradient.isfinite().all()) for gradient in gradients)


@torch.no_grad()
@pytest.mark.parametrize("name", MECHANISMS)
def test_given_positions_shift_translation_invariant_mechanisms_nowhere(name: str) -> None:
    made = model(MECHANISMS[name])
    tokens = ids(2, LENGTH)
    plain = made(tokens).logits
    counted = made(tokens, positions=torch.arange(LENGTH)[None]).logits
    assert largest(plain, counted) < 1e-6
    moved = made(tokens, positions=torch.arange(LENGTH)[None] + 7).logits
    if made.config.mechanism[0].traits().translation_invariant:
        assert largest(plain, moved) < 1e-4
    else:
        assert largest(plain, moved) > 1e-3


@torch.no_grad()
@pytest.mark.parametrize("name", [name for name in MECHANISMS if name != "none"])
def test_given_positions_are_used_and_not_the_order_of_tokens(name: str) -> None:
    made = model(MECHANISMS[name])
    tokens = ids(1, LENGTH)
    order = torch.tensor([3, 0, 7, 1, 6, 2, 5, 4])
    plain = made(tokens).logits
    shuffled = made(tokens[:, order], positions=order[None]).logits
    assert largest(plain[:, order], shuffled) < 1e-4
    assert largest(plain[:, order], made(tokens[:, order]).logits) > 1e-3


@torch.no_grad()
@pytest.mark.parametrize(("size", "reach"), [(1, 0), (2, 1), (3, 1), (6, 3)])
def test_a_window_of_one_layer_reaches_half_its_size_to_each_side(size: int, reach: int) -> None:
    made = model("rope", num_layers=1, window={"size": size})
    tokens = ids(1, LENGTH)
    plain = made(tokens).logits[0]
    for changed in range(LENGTH):
        other = tokens.clone()
        other[0, changed] = (other[0, changed] + 1) % 13
        moved = (made(other).logits[0] - plain).abs().amax(1) > 1e-6
        expected = [abs(place - changed) <= reach for place in range(LENGTH)]
        assert moved.tolist() == expected


@torch.no_grad()
def test_windows_act_in_the_layers_they_name_also_where_few_places_are_decoded() -> None:
    made = model("alibi", num_layers=3, window={"size": 2, "layers": {"every": 2}})
    selected = torch.zeros(1, LENGTH, dtype=torch.bool)
    selected[0, 5] = True
    calls: list[AttentionCall] = []
    made(ids(1, LENGTH), selected=selected, observer=lambda call, term: calls.append(call))
    shown = [None if call.visibility.pairs is None else call.visibility.pairs for call in calls]
    assert shown[0] is not None
    assert shown[1] is None
    assert shown[2] is not None
    assert shown[2].shape[2] == 1
    assert shown[2][0, 0, 0].nonzero().flatten().tolist() == [4, 5, 6]


@torch.no_grad()
def test_a_window_and_padding_and_documents_hold_together() -> None:
    made = model("rope", num_layers=1, window={"size": 4})
    documents = torch.tensor([[0, 0, 0, 0, 1, 1, 1, 1]])
    visible = torch.tensor([[True, True, True, True, True, False, True, True]])
    pairs: list[Any] = []
    made(
        ids(1, LENGTH),
        documents=documents,
        visible=visible,
        observer=lambda call, term: pairs.append(call.visibility.pairs),
    )
    seen = pairs[0][0, 0]
    assert seen[3].nonzero().flatten().tolist() == [1, 2, 3]
    assert seen[4].nonzero().flatten().tolist() == [4, 6, 7]  # the padding does not count


def test_a_sequence_without_any_token_has_finite_states_and_gradients() -> None:
    for name in MECHANISMS:
        made = model(MECHANISMS[name])
        tokens = ids(2, 4)
        visible = torch.tensor([[True] * 4, [False] * 4])
        output = made(tokens, visible=visible).logits
        assert bool(torch.isfinite(output).all()), name
        output[0].sum().backward()
        for parameter in made.parameters():
            if parameter.grad is not None:
                assert bool(torch.isfinite(parameter.grad).all()), name
        alone = made(tokens[:1]).logits
        assert largest(output[:1].detach(), alone.detach()) < 1e-5, name
