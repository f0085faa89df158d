"""DeBERTa v1: fused projections per head, no key bias, clipped distances, own position projections."""

import math
from collections.abc import Callable
from typing import Any

import pytest
import torch
from transformers import DebertaConfig, DebertaForMaskedLM

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
EPS = 1e-7
TERMS = [("c2p", "p2c"), ("c2p",), ("p2c",), ()]


def pair(terms: tuple[str, ...], limit: int) -> tuple[DebertaForMaskedLM, MaskedLanguageModel]:
    """Return transformers' model and ours with its weights."""
    config = DebertaConfig(
        **{key: value for key, value in SHAPE.items() if key != "attn_implementation"},
        relative_attention=bool(terms),
        pos_att_type=list(terms),
        max_relative_positions=limit,
        position_biased_input=False,
        type_vocab_size=0,
        layer_norm_eps=EPS,
        legacy=False,
    )
    original = randomized(DebertaForMaskedLM(config))
    mechanism: dict[str, Any] = {"name": "none"}
    if terms:
        mechanism = {
            "name": "disentangled",
            "c2p": "c2p" in terms,
            "p2c": "p2c" in terms,
            "buckets": {"name": "clipped", "max_distance": limit},
            "projections": "own",
            "norm_table": False,
        }
    ours = shape(projection_bias="no_key", norm={"eps": EPS}, mechanism=mechanism)
    return original, imported(original, ours)


@torch.no_grad()
@pytest.mark.parametrize("limit", [4, 64], ids=["clipped", "not clipped"])
@pytest.mark.parametrize("terms", TERMS, ids=lambda terms: "+".join(terms) or "no terms")
def test_logits_and_states_equal(
    terms: tuple[str, ...], limit: int, record_property: Record
) -> None:
    original, model = pair(terms, limit)
    gaps = []
    for length in LENGTHS:
        ids, visible, _ = given = sample(length)
        theirs = original(ids, attention_mask=given.attention_mask, output_hidden_states=True)
        ours = model(ids, visible=visible)
        gaps.append(difference(ours.logits, theirs.logits, visible))
        gaps.append(difference(ours.hidden, theirs.hidden_states[-1], visible))
    record_property("difference", max(gaps))
    assert max(gaps) <= TOLERANCE


@torch.no_grad()
def test_one_distance_more_is_merged_on_the_right_than_on_the_left() -> None:
    limit, length = 4, 11
    _, model = pair(("c2p", "p2c"), limit)
    ids = sample(length).ids[:1]
    c2p = model.score_terms(ids)[0]["c2p"][0, 0]
    query = 5
    # i - j = 4 shares the row of 3 (key left of the query); i - j = -4 has a row of its own
    assert c2p[query, query - 4] == c2p[query, query - 3]
    assert c2p[query, query + 4] != c2p[query, query + 3]
    assert c2p[query, query + 4] == c2p[query, query + 5]


@pytest.mark.parametrize("terms", TERMS, ids=lambda terms: "+".join(terms) or "no terms")
def test_the_divisor_counts_the_terms(terms: tuple[str, ...]) -> None:
    _, model = pair(terms, 4)
    assert model.config.divisor(0) == pytest.approx(math.sqrt(6 * (1 + len(terms))))


@torch.no_grad()
def test_thirds_of_the_fused_projection_must_be_taken_per_head() -> None:
    original, model = pair((), 4)
    ids, visible, _ = sample(6)
    theirs = original(ids, attention_mask=visible.long()).logits
    assert difference(model(ids, visible=visible).logits, theirs, visible) <= TOLERANCE
    for index, layer in enumerate(model.encoder.layers):
        fused = original.deberta.encoder.layer[index].attention.self.in_proj.weight
        thirds = fused.chunk(3)
        attention = layer.attention
        for part, weight in zip(("query", "key", "value"), thirds, strict=True):
            getattr(attention, f"{part}_proj").weight.copy_(weight)
    assert difference(model(ids, visible=visible).logits, theirs, visible) > 0.1
