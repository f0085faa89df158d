"""RoFormer: interleaved rotary pairs, narrow embeddings, and its heads."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers
from safetensors.torch import load_file, save_file

from posattn.checkpoints import from_pretrained, import_checkpoint
from posattn.errors import CheckpointError
from tests.checkpoints.originals import TOLERANCE, sample, through_our_hands

from .parity import head_difference, largest_difference, on_the_left, original

Record = Callable[[str, object], None]
TABLE = "roformer.encoder.embed_positions.weight"


def made(size: str = "tiny", head: str = "ForMaskedLM", **options: Any) -> Any:
    """Return a random RoFormer whose sinusoids are sinusoids."""
    config = {"max_position_embeddings": 48, **options}
    model = original(
        getattr(transformers, f"RoFormer{head}"), transformers.RoFormerConfig, size, **config
    )
    positions = model.roformer.encoder.embed_positions
    with torch.no_grad():
        positions.weight.copy_(positions.create_weight())
    return model


@torch.no_grad()
@pytest.mark.parametrize(
    ("size", "options"),
    [
        ("tiny", {}),
        ("tiny", {"rotary_value": True, "hidden_act": "relu"}),
        ("tiny", {"embedding_size": 16}),
        ("base", {"embedding_size": 128}),
    ],
    ids=str,
)
def test_all_states_and_logits_equal(
    size: str, options: dict[str, Any], tmp_path: Path, record_property: Record
) -> None:
    model = made(size, **options)
    found = through_our_hands(model, tmp_path)
    # values turn with the position itself, which transformers counts from the first column, padding or not
    sides = ("right",) if "rotary_value" in options else ("right", "left")
    difference = largest_difference(model, found, sides=sides)
    record_property("difference", difference)
    assert difference <= TOLERANCE
    assert (found.report.unused, found.report.new) == ((), ())
    assert found.encoder.config.max_length() is None


@torch.no_grad()
@pytest.mark.parametrize(
    ("task", "head"),
    [
        ("sequence", "ForSequenceClassification"),
        ("choice", "ForMultipleChoice"),
        ("token", "ForTokenClassification"),
        ("span", "ForQuestionAnswering"),
    ],
)
def test_logits_of_heads_equal(task: str, head: str, tmp_path: Path) -> None:
    model = made(head=head, **({} if task == "span" else {"num_labels": 5}))
    found = through_our_hands(model, tmp_path)
    given = sample(7)
    if task != "choice":
        assert head_difference(model, found, task, given) <= TOLERANCE
    else:  # transformers reads the last column, padding or not; the last token is the same on the left
        left = on_the_left(given)
        assert head_difference(model, found, task, left) <= TOLERANCE
        assert head_difference(model, found, task, given) > 1e-3


def test_sinusoids_that_were_changed_are_refused(tmp_path: Path) -> None:
    made().save_pretrained(tmp_path / "theirs")
    path = tmp_path / "theirs" / "model.safetensors"
    tensors = load_file(path)
    tensors[TABLE][3] += 0.5
    save_file(tensors, path, metadata={"format": "pt"})
    with pytest.raises(CheckpointError, match=f"{TABLE} is computed here.* its values are others"):
        import_checkpoint(tmp_path / "theirs", tmp_path / "ours")
    assert not (tmp_path / "ours").exists()


@torch.no_grad()
def test_paired_rows_serve_the_half_layout_once_permuted(tmp_path: Path) -> None:
    # C-3: the layout is an option of the recipe; rows 0 2 4 1 3 5 of each head are the same function
    model = made()
    model.save_pretrained(tmp_path / "theirs")
    paired = from_pretrained(tmp_path / "theirs")
    halved = from_pretrained(tmp_path / "theirs", overrides=["encoder.mechanism.layout=half"])
    assert paired.recipe.encoder.mechanism[0].layout == "interleaved"
    probabilities = [attention(paired, 11), attention(halved, 11)]
    assert float((probabilities[0] - probabilities[1]).abs().max()) > 1e-2
    alone = attention(paired, 1) - attention(halved, 1)
    assert float(alone.abs().max()) <= 1e-6
    first = halved.encoder.layers[0].attention
    for projection in (first.query_proj, first.key_proj):
        for tensor in (projection.weight, projection.bias):
            heads = tensor.unflatten(0, (4, -1))
            tensor.copy_(torch.cat([heads[:, 0::2], heads[:, 1::2]], dim=1).flatten(0, 1))
    assert float((attention(halved, 11) - probabilities[0]).abs().max()) <= 1e-6


def attention(found: Any, length: int) -> torch.Tensor:
    """Return the first layer's attention probabilities of a full sequence."""
    given = sample(length)
    calls: list[Any] = []
    found.masked_lm(
        given.ids[:1],
        segments=given.segments[:1],
        observer=lambda call, term: calls.append(call),
    )
    call = calls[0]
    return ((call.query @ call.key.mT) * call.scale).softmax(-1)
