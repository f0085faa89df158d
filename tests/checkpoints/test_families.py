"""Every family, tiny and at base width: all states and logits equal those of transformers."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor
from transformers import DebertaV2Config, DebertaV2ForMaskedLM

from posattn.checkpoints import Pretrained, import_checkpoint
from posattn.errors import CheckpointError, IncompatibleParts

from .originals import (
    KINDS,
    TOLERANCE,
    V3,
    Kind,
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
@pytest.mark.parametrize("size", ["tiny", "base"])
@pytest.mark.parametrize("name", KINDS)
def test_all_states_and_logits_equal(
    name: str, size: str, tmp_path: Path, record_property: Record
) -> None:
    if size == "base" and name not in AT_BASE_WIDTH:
        size = "tiny"  # the width changes nothing that these variants are about
    kind = KINDS[name]
    original = made(kind, size)
    found = through_our_hands(original, tmp_path)
    pad = 1 if name == "roberta" else 0
    gaps = [max(differences(original, found, sample(n, pad))) for n in kind.lengths]
    record_property("difference", max(gaps))
    assert max(gaps) <= TOLERANCE
