"""Where heads look, and loss by distance to evidence, against loops."""

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from pydantic import ValidationError

from posattn.backends import probabilities
from posattn.comparison.evaluations.attention_distance import (
    AttentionDistanceConfig,
    AttentionDistanceEvaluation,
)
from posattn.comparison.evaluations.evidence_distance import (
    EvidenceDistanceConfig,
    EvidenceDistanceEvaluation,
)
from posattn.comparison.evaluations.evidence_masks import NONE, distances, span_masks
from posattn.comparison.evaluations.probed import text_rows
from posattn.comparison.evaluations.subject import Subject
from posattn.decomposition import record
from posattn.recipe.build import build
from posattn.recipe.schema import load_recipe
from posattn.training.text.draws import fold
from posattn.training.text.prepare import prepare

TINY = {
    "encoder.hidden_size": 16,
    "encoder.num_layers": 2,
    "encoder.num_heads": 2,
    "encoder.backend": "eager",
    "data": {"corpus": "pydoc", "tokenizer": {"name": "characters"}, "max_length": 24},
}


@pytest.fixture(scope="module")
def corpus(text_cache: Path) -> Any:
    return prepare(load_recipe("quick/base", TINY).data)


def subject(corpus: Any, mechanism: Any, **more: Any) -> Subject:
    recipe = load_recipe("quick/base", {**TINY, "encoder.mechanism": mechanism, **more})
    return Subject(build(recipe, corpus.tokenizer.vocab_size), recipe, corpus, Path())


def look(of: Subject, **options: Any) -> dict[str, Any]:
    config = AttentionDistanceConfig(dtype="float64", **options)
    return AttentionDistanceEvaluation(config).evaluate(of)


def evidence(of: Subject, **options: Any) -> dict[str, Any]:
    return EvidenceDistanceEvaluation(EvidenceDistanceConfig(**options)).evaluate(of)


def test_distance_entropy_and_shares_are_those_of_loops(corpus: Any) -> None:
    of = subject(corpus, {"name": "alibi", "variant": "symmetric"})
    found = look(of, rows=2, length=9)
    ids = text_rows(of, 2, 9)
    model = of.model.double().eval()
    with torch.no_grad():
        probs = probabilities(record(model, ids).attentions[1].call)
    far = entropy = first = last = 0.0
    for row in range(2):
        for query in range(9):
            for key in range(9):
                p = float(probs[row, 1, query, key])
                far += p * abs(query - key) / 18
                entropy -= p * math.log(p) / 18
            first += float(probs[row, 1, query, 0]) / 18
            last += float(probs[row, 1, query, 8]) / 18
    layer = found["layers"][1]
    assert layer["name"] == "layer 2"
    for key, value in (("distance", far), ("entropy", entropy), ("first", first), ("last", last)):
        assert layer[key][1] == pytest.approx(value, rel=1e-9)
    assert layer["cls"] == layer["first"]  # [CLS] is the first token of every row


def test_attention_without_queries_is_spread_evenly(corpus: Any) -> None:
    of = subject(corpus, "none")
    with torch.no_grad():
        of.model.encoder.layers[0].attention.query_proj.weight.zero_()
    layer = look(of, length=24)["layers"][0]
    for key, value in (("distance", (24**2 - 1) / (3 * 24)), ("entropy", math.log(24))):
        assert layer[key] == pytest.approx([value] * 2)
        assert layer[f"uniform_{key}"] == pytest.approx([value] * 2)


def test_decoder_passes_are_layers_of_their_own(corpus: Any) -> None:
    of = subject(corpus, "disentangled", decoder={"name": "emd"})
    names = [layer["name"] for layer in look(of)["layers"]]
    assert names == ["layer 1", "decoder pass 1", "decoder pass 2"]


def test_distances_to_evidence_are_those_of_loops() -> None:
    drawn = np.random.default_rng(0)
    seen = drawn.random((5, 30)) < 0.3
    documents = np.sort(drawn.integers(0, 3, (5, 30)), axis=1)
    for own in (None, documents):
        left, right = distances(seen, own)
        for row in range(5):
            for place in range(30):
                around = [
                    at - place
                    for at in range(30)
                    if seen[row, at] and (own is None or own[row, at] == own[row, place])
                ]
                before = [-step for step in around if step < 0]
                behind = [step for step in around if step > 0]
                assert left[row, place] == min(before, default=NONE)
                assert right[row, place] == min(behind, default=NONE)


def test_spans_have_the_lengths_asked_for_and_gaps_between_them() -> None:
    chosen = span_masks((40, 64), fold(0, np.arange(40)), (2, 5), 4)
    lengths, gaps = set(), set()
    for row in chosen:
        edges = np.flatnonzero(np.diff(np.concatenate([[0], row, [0]])))
        starts, ends = edges[::2], edges[1::2]
        inside = ends < 64  # the last span may be cut
        lengths |= set((ends - starts)[inside].tolist())
        gaps |= {int(starts[0]), *(starts[1:] - ends[:-1]).tolist()}
    assert lengths == {2, 5}
    assert gaps == set(range(1, 8))
    alone = span_masks((1, 64), fold(0, np.arange(7, 8)), (2, 5), 4)
    assert (alone[0] == chosen[7]).all()


@pytest.mark.parametrize("options", [{"spans": (1, 6)}, {"rate": 0.4}])
def test_masks_are_the_same_for_every_model_and_loss_is_per_target(
    corpus: Any, options: dict[str, Any]
) -> None:
    first = evidence(subject(corpus, "none"), tokens=480, **options)
    second = evidence(subject(corpus, "rope", **{"train.seed": 5}), tokens=480, **options)
    assert first["masks"] == second["masks"]
    assert first["nearest"]["targets"] == second["nearest"]["targets"]
    assert sum(first["nearest"]["targets"]) > 50
    uniform = math.log(corpus.tokenizer.vocab_size)
    for loss, targets in zip(first["nearest"]["loss"], first["nearest"]["targets"], strict=True):
        assert (loss is None) == (targets == 0)
        assert loss is None or abs(loss - uniform) < 0.5  # untrained


def test_an_objective_that_masks_no_text_is_a_reason(corpus: Any) -> None:
    of = subject(corpus, "none")
    of.recipe = of.recipe.model_copy(update={"objective": _Other()})
    assert "restores no masked text" in evidence(of)["reason"]


class _Other:
    name = "other"


def test_rate_and_spans_exclude_each_other() -> None:
    with pytest.raises(ValidationError, match="leave out spans and gap, or rate"):
        EvidenceDistanceConfig(rate=0.5, gap=3)
    with pytest.raises(ValidationError, match=r"write \[1, 2, 4\]"):
        EvidenceDistanceConfig(edges=(2, 4))
