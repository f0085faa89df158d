"""Texts without their padding: which share a group, where their tokens are, and equal results."""

import pytest
import torch
from pydantic import ValidationError
from torch.testing import assert_close

from posattn.backends import AttentionBackend
from posattn.encoder.config import EncoderConfig
from posattn.encoder.decoders import MaskDecoderConfig, PlainDecoderConfig
from posattn.encoder.selection import selection
from posattn.encoder.texts import find_texts
from posattn.testing.mechanism_case import MechanismCase

LENGTHS = (9, 3, 8, 1, 0)
VISIBLE = torch.arange(9) < torch.tensor(LENGTHS)[:, None]
IDS = torch.arange(45).view(5, 9) % 22 + 1


def test_texts_of_like_length_share_a_group_and_rows_without_tokens_are_none():
    texts = find_texts(VISIBLE, None)
    assert [(group.longest, group.index.shape[0]) for group in texts.groups] == [
        (9, 2),
        (3, 1),
        (1, 1),
    ]
    assert [group.is_ragged for group in texts.groups] == [True, False, False]
    assert texts.groups[0].valid.sum(1).tolist() == [9, 8]


def test_tokens_go_into_one_row_and_back_to_where_they_were():
    texts = find_texts(VISIBLE, None)
    row = texts.in_a_row(IDS)
    assert torch.equal(row[0], IDS[VISIBLE])
    assert torch.equal(texts.in_rows(row), IDS.masked_fill(~VISIBLE, 0))
    same = texts.in_a_row(torch.arange(9)[None])
    assert torch.equal(same[0], torch.arange(9).expand(5, -1)[VISIBLE])


def test_documents_of_a_row_are_texts_in_whatever_order_they_stand():
    documents = torch.tensor([[7, 7, 2, 2, 2, 0]])
    texts = find_texts(torch.ones(1, 6, dtype=torch.bool), documents)
    found = [
        group.index[i][group.valid[i]] for group in texts.groups for i in range(len(group.index))
    ]
    assert sorted(index.tolist() for index in found) == [[0, 1], [2, 3, 4], [5]]


def test_queries_are_found_in_their_groups_and_groups_without_any_are_left_out():
    texts = find_texts(VISIBLE, None)
    chosen = torch.zeros_like(VISIBLE)
    chosen[0, 4] = chosen[2, 0] = chosen[2, 7] = True
    ((group, places, queries),) = texts.queries(selection(texts.in_a_row(chosen)))
    assert group.longest == 9
    assert places.index[places.valid].tolist() == [4, 0, 7]
    assert queries.numbers.tolist() == [0, 1, 2]


class Counting(AttentionBackend):
    """Counts the query-key pairs and the tokens that it is shown."""

    name = "counting"
    pairs = 0

    def refusals(self, call):
        return []

    def run(self, call):
        Counting.pairs += call.query.shape[0] * call.query.shape[2] * call.key.shape[2]
        return call.query


def test_attention_and_feed_forward_are_computed_for_real_tokens(monkeypatch):
    model = MechanismCase("alibi").model(unpad=True)
    for layer in model.encoder.layers:
        layer.attention.backend = Counting()
    tokens = []
    model.encoder.layers[0].feed_forward.register_forward_hook(
        lambda module, inputs, output: tokens.append(inputs[0].shape[:2])
    )
    model(IDS, visible=VISIBLE)
    assert tokens == [(1, sum(LENGTHS))]
    assert Counting.pairs == len(model.encoder.layers) * (2 * 9**2 + 3**2 + 1)


@pytest.mark.parametrize(
    "decoder", [PlainDecoderConfig(), MaskDecoderConfig()], ids=lambda d: d.name
)
def test_each_text_has_the_states_and_logits_that_it_has_alone(decoder):
    case = MechanismCase("disentangled")
    model = case.model(decoder=decoder, unpad=True, window={"size": 4})
    output = model(IDS, visible=VISIBLE)
    selected = VISIBLE & (IDS % 3 == 0)
    chosen = model(IDS, visible=VISIBLE, selected=selected)
    for row, length in enumerate(LENGTHS):
        assert not bool(output.logits[row, length:].any())
        if length:
            alone = model(IDS[row : row + 1, :length])
            assert_close(output.logits[row, :length], alone.logits[0])
            assert_close(output.hidden[row, :length], alone.hidden[0])
    assert_close(chosen.logits, output.logits[selected])
    states = model.encoder(IDS, visible=VISIBLE)
    assert_close(states[0], model.encoder(IDS[:1])[0])


def test_positions_of_the_caller_are_kept():
    case = MechanismCase("sinusoidal")
    positions = torch.arange(9).expand(5, -1).flip(1) * 2
    rows, texts = case.model(), case.model(unpad=True)
    found, expected = (
        model(IDS, visible=VISIBLE, positions=positions).logits[VISIBLE] for model in (texts, rows)
    )
    assert_close(found, expected)


def test_a_batch_of_padding_only_and_one_without_targets_run():
    model = MechanismCase("rope").model(unpad=True)
    nothing = torch.zeros_like(VISIBLE)
    assert model(IDS, visible=nothing, selected=nothing).logits.shape[0] == 0
    assert model(IDS, visible=VISIBLE, selected=nothing).logits.shape[0] == 0
    assert bool(model(IDS, visible=nothing).logits.isfinite().all())


def test_memory_is_refused_by_name_with_the_reason():
    mechanism = {"name": "transformer_xl", "memory_length": 4}
    with pytest.raises(ValidationError, match=r"'transformer_xl' has memory.*memory_length to 0"):
        EncoderConfig.model_validate({"mechanism": mechanism, "unpad": True})


@pytest.mark.parametrize("one_for_all", [True, False])
def test_a_given_relation_of_all_pairs_is_that_of_the_pairs_of_each_text(one_for_all):
    case = MechanismCase("t5")
    pairs = torch.randint(12, (1 if one_for_all else 5, 9, 9), generator=torch.Generator())
    selected = VISIBLE & (IDS % 2 == 0)
    for chosen in (None, selected):
        found = [
            case.model(relation={"name": "distances"}, unpad=unpad)(
                IDS, visible=VISIBLE, relation=pairs, selected=chosen
            ).logits
            for unpad in (True, False)
        ]
        rows = VISIBLE if chosen is None else ...
        assert_close(found[0][rows], found[1][rows])


def test_cells_of_a_grid_are_where_they_were():
    case = MechanismCase("t5")
    coordinates = torch.stack([torch.arange(9) // 3, torch.arange(9) % 3], -1)[None]
    options = {"relation": {"name": "grid", "rows": 3, "columns": 3}}
    found, expected = (
        case.model(unpad=unpad, **options)(IDS, visible=VISIBLE, coordinates=coordinates).logits
        for unpad in (True, False)
    )
    assert_close(found[VISIBLE], expected[VISIBLE])
