"""ModernBERT: local and global layers, norms without bias, gates, and heads that share a projection."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers

from posattn.checkpoints import from_pretrained, import_checkpoint
from posattn.errors import CheckpointError
from tests.checkpoints.originals import TOLERANCE, sample, through_our_hands

from .parity import head_difference, largest_difference, original, rewrite

Record = Callable[[str, object], None]
SPECIAL = {
    "pad_token_id": 0,
    "bos_token_id": 1,
    "eos_token_id": 2,
    "cls_token_id": 1,
    "sep_token_id": 2,
}


def made(size: str = "tiny", head: str = "ForMaskedLM", **options: Any) -> Any:
    """Return a random ModernBERT: layers global, local, local, global, local; a window of 3 to each side."""
    config = {"num_hidden_layers": 5, "local_attention": 6, **SPECIAL, **options}
    model = getattr(transformers, f"ModernBert{head}")
    return original(model, transformers.ModernBertConfig, size, **config)


BIASES = {
    "norm_bias": True,
    "attention_bias": True,
    "mlp_bias": True,
    "classifier_bias": True,
    "decoder_bias": False,
    "classifier_activation": "relu",
    "hidden_activation": "silu",
}


@torch.no_grad()
@pytest.mark.parametrize(
    ("size", "options"),
    [
        ("tiny", {}),
        ("tiny", BIASES),
        ("tiny", {"layer_types": ["sliding_attention"] * 5}),
        ("base", {"num_hidden_layers": 2, "local_attention": 7}),
    ],
    ids=["released", "with biases", "local only", "base"],
)
def test_all_states_and_logits_equal(
    size: str, options: dict[str, Any], tmp_path: Path, record_property: Record
) -> None:
    model = made(size, **options)
    found = through_our_hands(model, tmp_path)
    difference = largest_difference(model, found)
    record_property("difference", difference)
    assert difference <= TOLERANCE
    assert (found.report.unused, found.report.new) == ((), ())
    assert all(entry.fate != "filled" for entry in found.report.entries)


@torch.no_grad()
@pytest.mark.parametrize("pooling", ["cls", "mean"])
@pytest.mark.parametrize(
    ("task", "head"),
    [
        ("sequence", "ForSequenceClassification"),
        ("choice", "ForMultipleChoice"),
        ("token", "ForTokenClassification"),
        ("span", "ForQuestionAnswering"),
    ],
)
def test_logits_of_heads_equal(task: str, head: str, pooling: str, tmp_path: Path) -> None:
    labels = {} if task == "span" else {"num_labels": 5}
    model = made(head=head, num_hidden_layers=2, classifier_pooling=pooling, **labels)
    found = through_our_hands(model, tmp_path)
    assert head_difference(model, found, task, sample(7)) <= TOLERANCE


@torch.no_grad()
def test_older_configs_say_how_often_a_global_layer_comes(tmp_path: Path) -> None:
    model = made(
        rope_parameters={
            "full_attention": {"rope_type": "default", "rope_theta": 500.0},
            "sliding_attention": {"rope_type": "default", "rope_theta": 100.0},
        }
    )
    model.save_pretrained(tmp_path)
    rewrite(
        tmp_path,
        layer_types=None,
        rope_parameters=None,
        global_attn_every_n_layers=3,
        global_rope_theta=500.0,
        local_rope_theta=100,
    )
    found = from_pretrained(tmp_path)
    assert largest_difference(model, found, (11,)) <= TOLERANCE
    rewrite(tmp_path, global_attn_every_n_layers=2)
    assert largest_difference(model, from_pretrained(tmp_path), (11,)) > 1e-3


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"layer_types": ["full_attention"]}, "layer_types .* for 5 layers"),
        ({"hidden_activation": "tanh"}, "hidden_activation = 'tanh'.* as a gate"),
        ({"classifier_pooling": "max"}, "classifier_pooling = 'max'"),
        ({"rope_scaling": {"type": "linear"}}, "rope_scaling"),
        ({"rope_parameters": {"full_attention": {"rope_type": "yarn"}}}, "rope_type = 'yarn'"),
        ({"rope_parameters": 3}, "rope_parameters = 3.* a mapping"),
    ],
)
def test_what_is_not_computed_is_refused_by_key(
    changes: dict[str, Any], message: str, tmp_path: Path
) -> None:
    made().save_pretrained(tmp_path / "theirs")
    rewrite(tmp_path / "theirs", **changes)
    with pytest.raises(CheckpointError, match=message):
        import_checkpoint(tmp_path / "theirs", tmp_path / "ours")
