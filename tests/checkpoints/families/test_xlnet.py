"""XLNet in both directions: segment term, language-model head, summaries, and what is refused."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers

from posattn.checkpoints import from_pretrained, import_checkpoint
from posattn.errors import CheckpointError
from tests.checkpoints.originals import SIZES, TOLERANCE, sample, stirred, through_our_hands

from .parity import head_difference, largest_difference, on_the_left, rewrite

Record = Callable[[str, object], None]
ACCEPTED = ("*mask_emb",)


def made(size: str = "tiny", head: str = "LMHeadModel", **options: Any) -> Any:
    """Return a random XLNet."""
    shape = SIZES[size]
    config = transformers.XLNetConfig(
        vocab_size=shape["vocab_size"],
        d_model=shape["hidden_size"],
        n_layer=shape["num_hidden_layers"],
        n_head=shape["num_attention_heads"],
        d_inner=shape["intermediate_size"],
        **options,
    )
    model = getattr(transformers, f"XLNet{head}")(config)
    return stirred(model, 0.2 if size == "tiny" else 0.03)


@torch.no_grad()
@pytest.mark.parametrize(
    ("size", "options"),
    [("tiny", {}), ("tiny", {"clamp_len": 5, "ff_activation": "relu"}), ("base", {})],
    ids=["tiny", "clamped", "base"],
)
def test_all_states_and_logits_equal(
    size: str, options: dict[str, Any], tmp_path: Path, record_property: Record
) -> None:
    model = made(size, **options)
    found = through_our_hands(model, tmp_path, accept_unused=ACCEPTED)
    difference = largest_difference(model, found)
    record_property("difference", difference)
    assert difference <= TOLERANCE
    assert found.report.new == ()


@torch.no_grad()
def test_segments_count_and_without_them_all_tokens_are_of_one(tmp_path: Path) -> None:
    model = made()
    model.save_pretrained(tmp_path)
    found = from_pretrained(tmp_path, accept_unused=ACCEPTED)
    ids, _, segments = sample(11)
    theirs = model(ids).logits
    assert float((found.masked_lm(ids).logits - theirs).abs().max()) <= TOLERANCE
    zeros = found.masked_lm(ids, segments=torch.zeros_like(ids)).logits
    assert float((zeros - theirs).abs().max()) <= TOLERANCE
    assert float((found.masked_lm(ids, segments=segments).logits - theirs).abs().max()) > 1e-2
    renamed = found.masked_lm(ids, segments=7 - 3 * segments).logits
    torch.testing.assert_close(renamed, found.masked_lm(ids, segments=segments).logits)


@torch.no_grad()
@pytest.mark.parametrize(
    ("task", "head"),
    [
        ("sequence", "ForSequenceClassification"),
        ("choice", "ForMultipleChoice"),
        ("token", "ForTokenClassification"),
        ("span", "ForQuestionAnsweringSimple"),
    ],
)
@pytest.mark.parametrize("summary", ["last", "first"])
def test_logits_of_heads_equal(task: str, head: str, summary: str, tmp_path: Path) -> None:
    labels = {} if task == "span" else {"num_labels": 5}
    model = made(head=head, summary_type=summary, **labels)
    found = through_our_hands(model, tmp_path, accept_unused=ACCEPTED)
    given = sample(7) if summary == "first" else on_the_left(sample(7))
    assert head_difference(model, found, task, given) <= TOLERANCE


@torch.no_grad()
def test_memory_is_an_option_and_carries_segments_on(tmp_path: Path) -> None:
    model = made("tiny", "Model")
    model.save_pretrained(tmp_path)
    overrides = ["encoder.mechanism.memory_length=4", "data.order=streams"]
    found = from_pretrained(tmp_path, overrides=overrides, accept_unused=ACCEPTED)
    encoder, memory, theirs = found.encoder, found.encoder.empty_memory(3), None
    for length in (5, 7):
        ids, _, segments = sample(length)
        ids = ids.clamp(min=3)
        output = model(ids, token_type_ids=segments, mems=theirs, use_mems=True)
        theirs = tuple(state[-4:] for state in output.mems)
        context = encoder.begin(ids, segments=segments, memory=memory)
        states = encoder.run(encoder.embed(ids, segments, context), context)
        ours = encoder.finish(encoder.last(states[-1], context))
        memory = context.remember(states)
        assert float((ours - output.last_hidden_state).abs().max()) <= TOLERANCE


@pytest.mark.parametrize(
    ("head", "changes", "message"),
    [
        ("LMHeadModel", {}, "mask_emb"),
        ("LMHeadModel", {"attn_type": "uni"}, "attn_type = 'uni'"),
        ("LMHeadModel", {"bi_data": True}, "bi_data = True"),
        ("LMHeadModel", {"d_head": 7}, "d_head = 7"),
        ("ForSequenceClassification", {"summary_type": "mean"}, "summary_type = 'mean'"),
        ("ForQuestionAnswering", {}, "ForQuestionAnsweringSimple can be imported"),
    ],
)
def test_what_has_no_place_is_refused_by_name(
    head: str, changes: dict[str, Any], message: str, tmp_path: Path
) -> None:
    made(head=head).save_pretrained(tmp_path / "theirs")
    rewrite(tmp_path / "theirs", **changes)
    with pytest.raises(CheckpointError, match=message):
        import_checkpoint(tmp_path / "theirs", tmp_path / "ours")
    assert not (tmp_path / "ours").exists()
