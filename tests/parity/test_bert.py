"""BERT and RoBERTa: learned positions, segments, norms after each block, exact gelu, tied head."""

from collections.abc import Callable

import pytest
import torch
from transformers import BertConfig, BertForMaskedLM, RobertaConfig, RobertaForMaskedLM

from posattn.encoder.model import MaskedLanguageModel

from .originals import (
    LENGTHS,
    SHAPE,
    TOLERANCE,
    difference,
    imported,
    randomized,
    sample,
    shape,
)

Record = Callable[[str, object], None]


@pytest.fixture(scope="module")
def berts() -> tuple[BertForMaskedLM, MaskedLanguageModel]:
    original = randomized(BertForMaskedLM(BertConfig(**SHAPE, max_position_embeddings=32)))
    config = shape(segments=2, mechanism={"name": "learned", "max_positions": 32})
    return original, imported(original, config)


@pytest.fixture(scope="module")
def robertas() -> tuple[RobertaForMaskedLM, MaskedLanguageModel]:
    config = RobertaConfig(**SHAPE, max_position_embeddings=34, pad_token_id=1, type_vocab_size=1)
    original = randomized(RobertaForMaskedLM(config))
    learned = {"name": "learned", "max_positions": 34, "padding_row": 1}
    norm = {"eps": config.layer_norm_eps}
    return original, imported(original, shape(segments=1, norm=norm, mechanism=learned))


@torch.no_grad()
@pytest.mark.parametrize("length", LENGTHS)
def test_bert_logits_and_states_equal(
    berts: tuple[BertForMaskedLM, MaskedLanguageModel], length: int, record_property: Record
) -> None:
    original, model = berts
    ids, visible, segments = given = sample(length)
    theirs = original(
        ids,
        attention_mask=given.attention_mask,
        token_type_ids=segments,
        output_hidden_states=True,
    )
    ours = model(ids, visible=visible, segments=segments)
    gap = difference(ours.logits, theirs.logits, visible)
    record_property("difference", gap)
    assert gap <= TOLERANCE
    assert difference(ours.hidden, theirs.hidden_states[-1], visible) <= TOLERANCE


@torch.no_grad()
def test_bert_with_left_padding_equals_once_it_is_told_positions(
    berts: tuple[BertForMaskedLM, MaskedLanguageModel], record_property: Record
) -> None:
    original, model = berts
    ids, visible, segments = given = sample(11, side="left")
    counted = (visible.long().cumsum(1) - 1).clamp(min=0)
    theirs = original(
        ids,
        attention_mask=given.attention_mask,
        token_type_ids=segments,
        position_ids=counted,
    ).logits
    gap = difference(model(ids, visible=visible, segments=segments).logits, theirs, visible)
    record_property("difference", gap)
    assert gap <= TOLERANCE


@torch.no_grad()
def test_bert_logits_of_selected_places_equal_in_order(
    berts: tuple[BertForMaskedLM, MaskedLanguageModel],
) -> None:
    original, model = berts
    ids, visible, segments = given = sample(11)
    selected = visible & (ids % 3 == 0)
    theirs = original(ids, attention_mask=given.attention_mask, token_type_ids=segments).logits
    ours = model(ids, visible=visible, segments=segments, selected=selected).logits
    assert ours.shape[0] == int(selected.sum()) > 0
    assert difference(ours, theirs[selected]) <= TOLERANCE


@torch.no_grad()
@pytest.mark.parametrize("side", ["left", "right"])
@pytest.mark.parametrize("length", [*LENGTHS, 32])
def test_roberta_logits_equal_on_both_sides_of_padding(
    robertas: tuple[RobertaForMaskedLM, MaskedLanguageModel],
    length: int,
    side: str,
    record_property: Record,
) -> None:
    original, model = robertas
    ids, visible, _ = given = sample(length, side=side, pad=1)
    theirs = original(ids, attention_mask=given.attention_mask).logits
    gap = difference(
        model(ids, visible=visible, segments=torch.zeros_like(ids)).logits, theirs, visible
    )
    record_property("difference", gap)
    assert gap <= TOLERANCE


def test_roberta_rows_of_left_padded_ids_start_after_the_padding_row(
    robertas: tuple[RobertaForMaskedLM, MaskedLanguageModel],
) -> None:
    original, model = robertas
    ids = torch.tensor([[1, 1, 5, 6, 7]])
    theirs = original.roberta.embeddings.create_position_ids_from_input_ids(ids, 1)
    context = model.encoder.begin(ids, visible=ids != 1)
    learned = model.encoder.position.mechanisms["learned"]
    rows = learned.rows(context.tokens.positions)
    assert rows.tolist() == theirs.tolist() == [[1, 1, 2, 3, 4]]


def test_a_table_of_34_rows_after_padding_row_1_takes_32_tokens(
    robertas: tuple[RobertaForMaskedLM, MaskedLanguageModel],
) -> None:
    assert robertas[1].max_length() == 32
