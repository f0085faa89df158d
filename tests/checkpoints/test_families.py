"""Every family, tiny and at base width: all states and logits equal those of transformers."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from posattn.checkpoints import Pretrained, from_pretrained, import_checkpoint
from posattn.errors import CheckpointError, IncompatibleParts

from .originals import (
    KINDS,
    TOLERANCE,
    V3,
    Sample,
    all_states,
    gap,
    made,
    sample,
    segments_for,
    theirs,
    through_our_hands,
)

Record = Callable[[str, object], None]
AT_BASE_WIDTH = ["bert", "roberta", "deberta", "deberta v3", "deberta v2 xlarge"]


def differences(original: Any, found: Pretrained, given: Sample) -> list[float]:
    """Return the largest difference of each layer's states, and of the logits."""
    theirs_ = original(**theirs(original, given), output_hidden_states=True)
    ours = all_states(found, given)
    assert len(ours) == len(theirs_.hidden_states)
    states = [
        gap(one, other, given.visible)
        for one, other in zip(ours, theirs_.hidden_states, strict=True)
    ]
    assert found.masked_lm is not None
    segments = segments_for(found, given.segments)
    logits: Tensor = found.masked_lm(given.ids, visible=given.visible, segments=segments).logits
    return [*states, gap(logits, theirs_.logits, given.visible)]


@torch.no_grad()
@pytest.mark.parametrize(
    ("name", "size"),
    [*((name, "tiny") for name in KINDS), *((name, "base") for name in AT_BASE_WIDTH)],
)
def test_all_states_and_logits_equal(
    name: str, size: str, tmp_path: Path, record_property: Record
) -> None:
    kind = KINDS[name]
    original = made(kind, size)
    found = through_our_hands(original, tmp_path)
    pad = 1 if "roberta" in name else 0
    gaps = [max(differences(original, found, sample(n, pad))) for n in kind.lengths]
    record_property("difference", max(gaps))
    assert max(gaps) <= TOLERANCE
    assert (found.report.unused, found.report.new) == ((), ())


@torch.no_grad()
@pytest.mark.parametrize("shared", [True, False])
def test_past_the_largest_distance_microsoft_is_the_default_and_transformers_an_option(
    shared: bool, tmp_path: Path, record_property: Record
) -> None:
    options = V3 | {"max_relative_positions": 12, "share_att_key": shared}
    original = made(KINDS["deberta v3"], **options)
    given = sample(40)
    found = through_our_hands(original, tmp_path)
    assert max(differences(original, found, sample(11))) <= TOLERANCE
    assert max(differences(original, found, given)) > 1e-2
    as_theirs = ["encoder.mechanism.buckets.beyond=growing"]
    found = from_pretrained(tmp_path / "theirs", overrides=as_theirs)
    difference = max(differences(original, found, given))
    record_property("difference", difference)
    assert difference <= TOLERANCE


def test_microsofts_buckets_past_the_end_are_those_of_its_formula(tmp_path: Path) -> None:
    # tests/parity/test_deberta_v2.py holds scores of whole layers against Microsoft's formula in loops
    found = through_our_hands(made(KINDS["deberta v3"]), tmp_path)
    buckets = found.recipe.encoder.mechanism[0].buckets
    far = torch.tensor([-1000, -40, -39, 39, 40, 1000])
    assert buckets.signed(far).tolist() == [-7, -7, -7, 7, 7, 7]


@torch.no_grad()
@pytest.mark.parametrize("order", ["c2p|p2c", "p2c|c2p", ["p2c", "c2p"], "c2p"])
def test_position_terms_come_in_any_order_and_spelling(order: Any, tmp_path: Path) -> None:
    original = made(KINDS["deberta v3"], pos_att_type=order)
    found = through_our_hands(original, tmp_path)
    assert max(differences(original, found, sample(7))) <= TOLERANCE


def test_a_length_past_a_learned_table_is_an_error_that_names_the_limit(tmp_path: Path) -> None:
    found = through_our_hands(made(KINDS["bert"]), tmp_path)
    ids = torch.zeros(1, 25, dtype=torch.long)
    with pytest.raises(
        IncompatibleParts, match="25 tokens, but mechanism 'learned' takes at most 24"
    ):
        found.encoder(ids, segments=ids)


def test_a_roberta_table_names_its_usable_length_and_starts_after_padding(tmp_path: Path) -> None:
    found = through_our_hands(made(KINDS["roberta"]), tmp_path)  # 26 rows, padding id 1
    assert found.encoder.config.max_length() == 24
    assert found.recipe.data.max_length == 24
    assert "the position table of 26 rows takes 24 tokens" in found.report.notes
    ids = torch.tensor([[1, 1, 5, 6, 7]])
    context = found.encoder.begin(ids, visible=ids != 1)
    learned = found.encoder.position.mechanisms["learned"]
    assert learned.rows(context.tokens.positions).tolist() == [[1, 1, 2, 3, 4]]
    with pytest.raises(
        IncompatibleParts, match="25 tokens, but mechanism 'learned' takes at most 24"
    ):
        found.encoder(torch.full((1, 25), 5))


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("bert", {"is_decoder": True}, "is_decoder = True"),
        ("bert", {"position_embedding_type": "relative_key"}, "position_embedding_type"),
        ("bert", {"hidden_act": "quick_gelu"}, "hidden_act = 'quick_gelu'.* one of gelu"),
        ("roberta", {"hidden_act": "relu"}, "hidden_act = 'relu'"),
        ("deberta", {"talking_head": True}, "talking_head = True"),
        ("deberta", {"relative_attention": False}, "relative_attention false"),
        ("deberta v3", {"pos_att_type": ["c2p", "p2p"]}, r"\['p2p'\] cannot be imported"),
        ("deberta v3", {"norm_rel_ebd": "batch_norm"}, r"norm_rel_ebd \['batch_norm'\]"),
        ("deberta v3", {"attention_head_size": 8}, "attention_head_size = 8.* 6"),
        ("deberta v3", {"hidden_size": 24.0}, "hidden_size = 24.0.* whole number"),
    ],
)
def test_what_a_family_does_not_compute_is_refused_by_key(
    name: str, options: dict[str, Any], message: str, tmp_path: Path
) -> None:
    made(KINDS[name]).save_pretrained(tmp_path / "theirs")
    path = tmp_path / "theirs" / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | options))
    with pytest.raises(CheckpointError, match=message):
        import_checkpoint(tmp_path / "theirs", tmp_path / "ours")
    assert not (tmp_path / "ours").exists()
