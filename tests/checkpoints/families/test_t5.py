"""T5's encoder, version 1.0 and 1.1, alone, with labels of tokens, and out of a whole T5."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers

from posattn.checkpoints import from_pretrained, import_checkpoint
from posattn.errors import CheckpointError
from tests.checkpoints.originals import SIZES, TOLERANCE, gap, sample, stirred, through_our_hands

from .parity import head_difference, largest_difference, rewrite

Record = Callable[[str, object], None]


def made(size: str = "tiny", head: str = "EncoderModel", **options: Any) -> Any:
    """Return a random T5."""
    shape = SIZES[size]
    config = transformers.T5Config(
        vocab_size=shape["vocab_size"],
        d_model=shape["hidden_size"],
        d_kv=shape["hidden_size"] // shape["num_attention_heads"],
        num_heads=shape["num_attention_heads"],
        num_layers=shape["num_hidden_layers"],
        d_ff=shape["intermediate_size"],
        **options,
    )
    model = getattr(transformers, f"T5{head}")(config)
    return stirred(model, 0.2 if size == "tiny" else 0.03)


@torch.no_grad()
@pytest.mark.parametrize(
    ("size", "options"),
    [
        ("tiny", {}),
        ("tiny", {"feed_forward_proj": "gated-silu", "relative_attention_num_buckets": 8}),
        ("tiny", {"feed_forward_proj": "gated-gelu", "relative_attention_max_distance": 20}),
        ("base", {"feed_forward_proj": "gated-gelu"}),
    ],
    ids=["1.0", "gated-silu", "1.1, past the largest distance", "1.1 base"],
)
def test_all_states_equal(
    size: str, options: dict[str, Any], tmp_path: Path, record_property: Record
) -> None:
    model = made(size, **options)
    found = through_our_hands(model, tmp_path)
    difference = largest_difference(model, found)
    record_property("difference", difference)
    assert difference <= TOLERANCE
    assert (found.report.unused, found.report.new) == ((), ())
    assert found.masked_lm is None


@torch.no_grad()
def test_labels_of_tokens_equal(tmp_path: Path) -> None:
    model = made(head="ForTokenClassification", num_labels=5)
    found = through_our_hands(model, tmp_path)
    assert head_difference(model, found, "token", sample(7)) <= TOLERANCE


@torch.no_grad()
def test_the_encoder_of_a_whole_t5_comes_alone_once_the_rest_is_accepted(tmp_path: Path) -> None:
    model = made(head="ForConditionalGeneration")
    model.save_pretrained(tmp_path)
    with pytest.raises(CheckpointError, match=r"decoder\.block\.0"):
        from_pretrained(tmp_path)
    found = from_pretrained(tmp_path, accept_unused=["decoder.*", "lm_head.weight"])
    given = sample(11)
    theirs = model.encoder(given.ids, attention_mask=given.visible.long()).last_hidden_state
    assert gap(found.encoder(given.ids, visible=given.visible), theirs, given.visible) <= TOLERANCE


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"d_kv": 8}, "4 heads of d_kv 8, which together are not d_model 24"),
        ({"feed_forward_proj": "gated-relu"}, "feed_forward_proj = 'gated-relu'"),
        ({"is_decoder": True}, "is_decoder = True"),
    ],
)
def test_what_is_not_computed_is_refused_by_key(
    changes: dict[str, Any], message: str, tmp_path: Path
) -> None:
    made().save_pretrained(tmp_path / "theirs")
    rewrite(tmp_path / "theirs", **changes)
    with pytest.raises(CheckpointError, match=message):
        import_checkpoint(tmp_path / "theirs", tmp_path / "ours")
