"""Every head of every family: its logits and pooled vectors equal those of transformers."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers

from posattn.checkpoints import Pretrained
from posattn.errors import UnknownName

from .originals import (
    KINDS,
    TOLERANCE,
    gap,
    made,
    sample,
    segments_for,
    theirs,
    through_our_hands,
)

Record = Callable[[str, object], None]
FAMILIES = {"bert": "Bert", "roberta": "Roberta", "deberta": "Deberta", "deberta v3": "DebertaV2"}


def original(name: str, head: str, **options: Any) -> Any:
    """Return a small random model with this head."""
    return made(KINDS[name], model=getattr(transformers, FAMILIES[name] + head), **options)


def task(found: Pretrained, name: str, length: int, pad: int = 0) -> Any:
    """Return the output of a head."""
    ids, visible, segments = sample(length, pad)
    return found.tasks(name, ids, visible=visible, segments=segments_for(found, segments))


@torch.no_grad()
@pytest.mark.parametrize("head", ["sequence", "token", "span"])
@pytest.mark.parametrize("name", FAMILIES)
def test_logits_of_a_head_equal(
    name: str, head: str, tmp_path: Path, record_property: Record
) -> None:
    classes = {
        "sequence": "ForSequenceClassification",
        "token": "ForTokenClassification",
        "span": "ForQuestionAnswering",
    }
    labels = {} if head == "span" else {"num_labels": 5, "classifier_dropout": 0.3}
    model = original(name, classes[head], **labels)
    found = through_our_hands(model, tmp_path)
    assert list(found.tasks.tasks) == [head]
    assert found.masked_lm is None
    pad = 1 if name == "roberta" else 0
    given = sample(7, pad)
    out = model(**theirs(model, given))
    ours = task(found, head, 7, pad).logits
    if head == "span":
        expected = torch.stack([out.start_logits, out.end_logits], dim=-1)
    else:
        expected = out.logits
        assert found.report.labels == tuple(f"LABEL_{index}" for index in range(5))
    difference = gap(ours, expected, None if head == "sequence" else given.visible)
    record_property("difference", difference)
    assert difference <= TOLERANCE


@torch.no_grad()
@pytest.mark.parametrize("name", ["bert", "roberta", "deberta v3"])
def test_logits_of_a_choice_equal(name: str, tmp_path: Path) -> None:
    model = original(name, "ForMultipleChoice")
    found = through_our_hands(model, tmp_path)
    given = sample(7, pad=1 if name == "roberta" else 0)
    both = {
        key: torch.stack([value, value.flip(0)], 1) for key, value in theirs(model, given).items()
    }
    segments = both.get("token_type_ids")
    ours = found.tasks(
        "choice", both["input_ids"], visible=both["attention_mask"].bool(), segments=segments
    )
    assert ours.logits.shape == (3, 2)
    assert gap(ours.logits, model(**both).logits) <= TOLERANCE


@torch.no_grad()
@pytest.mark.parametrize("name", ["bert", "roberta"])
def test_a_bare_encoder_keeps_its_pooler(name: str, tmp_path: Path) -> None:
    model = original(name, "Model")
    found = through_our_hands(model, tmp_path)
    pad = 1 if name == "roberta" else 0
    given = sample(7, pad)
    assert list(found.tasks.tasks) == ["pooled"]
    pooled = task(found, "pooled", 7, pad).pooled
    assert gap(pooled, model(**theirs(model, given)).pooler_output) <= TOLERANCE


@torch.no_grad()
def test_a_bare_deberta_has_no_heads(tmp_path: Path) -> None:
    model = original("deberta v3", "Model")
    found = through_our_hands(model, tmp_path)
    assert not found.tasks.tasks
    assert found.masked_lm is None
    given = sample(7)
    ours = found.encoder(given.ids, visible=given.visible)
    assert gap(ours, model(**theirs(model, given)).last_hidden_state, given.visible) <= TOLERANCE
    with pytest.raises(UnknownName, match=r"no head 'pooled'.*none"):
        found.tasks("pooled", given.ids)


@torch.no_grad()
def test_a_bert_of_pretraining_keeps_both_heads(tmp_path: Path) -> None:
    model = original("bert", "ForPreTraining")
    found = through_our_hands(model, tmp_path)
    given = sample(7)
    out = model(**theirs(model, given))
    assert found.masked_lm is not None
    ours = found.masked_lm(given.ids, visible=given.visible, segments=given.segments).logits
    assert gap(ours, out.prediction_logits, given.visible) <= TOLERANCE
    next_sentence = task(found, "next_sentence", 7)
    assert gap(next_sentence.logits, out.seq_relationship_logits) <= TOLERANCE
    assert (found.report.unused, found.report.new) == ((), ())
