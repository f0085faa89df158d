"""RoFormer: interleaved rotary pairs, values turned too if asked."""

from collections.abc import Callable

import pytest
import torch
from transformers import RoFormerConfig, RoFormerForMaskedLM

from posattn.encoder.model import MaskedLanguageModel

from .originals import (
    HEADS,
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


def pair(
    rotate_value: bool, layout: str = "interleaved"
) -> tuple[RoFormerForMaskedLM, MaskedLanguageModel]:
    """Return transformers' model and ours with its weights."""
    config = RoFormerConfig(**SHAPE, rotary_value=rotate_value, max_position_embeddings=48)
    original = randomized(RoFormerForMaskedLM(config))
    with torch.no_grad():  # the sinusoids are a frozen parameter: restore what `randomized` drew
        positions = original.roformer.encoder.embed_positions
        positions.weight.copy_(positions.create_weight())
    rope = {"name": "rope", "layout": layout, "rotate_value": rotate_value}
    return original, imported(original, shape(segments=2, mechanism=rope))


@torch.no_grad()
@pytest.mark.parametrize("rotate_value", [False, True], ids=["query and key", "value too"])
def test_logits_and_states_equal(rotate_value: bool, record_property: Record) -> None:
    original, model = pair(rotate_value)
    gaps = []
    for length in [*LENGTHS, 47]:
        ids, visible, segments = given = sample(length)
        theirs = original(
            ids,
            attention_mask=given.attention_mask,
            token_type_ids=segments,
            output_hidden_states=True,
        )
        ours = model(ids, visible=visible, segments=segments)
        gaps.append(difference(ours.logits, theirs.logits, visible))
        gaps.append(difference(ours.hidden, theirs.hidden_states[-1], visible))
    record_property("difference", max(gaps))
    assert max(gaps) <= TOLERANCE


@torch.no_grad()
def test_the_other_layout_differs_until_rows_of_query_and_key_are_permuted() -> None:
    original, model = pair(rotate_value=False, layout="half")
    ids, visible, segments = sample(11)
    theirs = original(ids, attention_mask=visible.long(), token_type_ids=segments).logits
    assert difference(model(ids, visible=visible, segments=segments).logits, theirs, visible) > 1e-2
    one = ids[:, :1]
    alone = original(one, token_type_ids=segments[:, :1]).logits
    assert difference(model(one, segments=segments[:, :1]).logits, alone) <= TOLERANCE
    for layer in model.encoder.layers:
        for projection in (layer.attention.query_proj, layer.attention.key_proj):
            for tensor in (projection.weight, projection.bias):
                heads = tensor.unflatten(0, (HEADS, -1))
                tensor.copy_(torch.cat([heads[:, 0::2], heads[:, 1::2]], dim=1).flatten(0, 1))
    ours = model(ids, visible=visible, segments=segments).logits
    assert difference(ours, theirs, visible) <= TOLERANCE


@torch.no_grad()
def test_left_padding_changes_nothing_for_relative_positions() -> None:
    original, model = pair(rotate_value=False)
    ids, visible, segments = sample(11, side="left")
    theirs = original(ids, attention_mask=visible.long(), token_type_ids=segments).logits
    ours = model(ids, visible=visible, segments=segments).logits
    assert difference(ours, theirs, visible) <= TOLERANCE
