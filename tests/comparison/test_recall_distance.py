"""`recall_distance`: every target counted once, by the distance that a plain loop finds."""

from pathlib import Path

import numpy as np
import pytest
import torch

from posattn.comparison.evaluations.recall_distance import (
    RecallDistanceConfig,
    RecallDistanceEvaluation,
    distances_back,
)
from posattn.comparison.evaluations.subject import Subject
from posattn.comparison.probes import make_probe
from posattn.comparison.probes.recall import NeedleConfig
from posattn.recipe.build import build
from posattn.recipe.merge import merge
from posattn.recipe.reader import Document
from posattn.recipe.resolve import resolve_recipe
from posattn.recipe.schema import recipe_from_document
from posattn.training.text.prepare import prepare


@pytest.fixture(scope="module")
def subject():
    sections = make_probe(NeedleConfig(length=16)).overrides()
    sections["data"]["corpus"]["tokens"] = 4096
    sections["encoder"] = {"hidden_size": 16, "num_layers": 1, "num_heads": 2}
    sections["name"] = "needle"
    recipe = recipe_from_document(merge(resolve_recipe("quick/none"), Document(sections)))
    corpus = prepare(recipe.data)
    model = build(recipe, corpus.tokenizer.vocab_size)
    return Subject(model, recipe, corpus, Path())


def test_distances_back_are_those_of_a_loop():
    ids = np.random.default_rng(0).integers(0, 5, size=(4, 12))
    expected = np.zeros_like(ids)
    for row, column in np.ndindex(*ids.shape):
        for earlier in range(column):
            if ids[row, earlier] == ids[row, column]:
                expected[row, column] = column - earlier
    assert np.array_equal(distances_back(ids), expected)


def test_every_target_is_in_one_group_and_accuracy_is_right_answers_over_targets(
    subject, monkeypatch
):
    def knows_all(model, batch, *_):
        targets = batch.targets[batch.selected]
        far = torch.from_numpy(distances_back(batch.ids.numpy()))[batch.selected] > 8
        logits = torch.nn.functional.one_hot(targets, 40).float()
        logits[far] = -logits[far]  # right where the symbol is near, wrong where it is far
        return type("Found", (), {"logits": logits, "targets": targets, "memory": None})()

    monkeypatch.setattr("posattn.comparison.evaluations.recall_distance.run_batch", knows_all)
    config = RecallDistanceConfig(edges=(1, 5, 9), multiple=2)
    found = RecallDistanceEvaluation(config).evaluate(subject)
    assert found["length"] == 32
    assert found["accuracy"] == {"1 to 4": 1.0, "5 to 8": 1.0, "9 or more": 0.0}
    rows = len(subject.corpus.validation.samples_at(32, None))
    assert sum(found["targets"].values()) == 2 * rows, "two keys are asked about in each row"
    assert found["without_earlier_place"] == 0


def test_a_length_that_the_model_cannot_take_is_named(subject, monkeypatch):
    monkeypatch.setattr(Subject, "max_length", lambda self: 20)
    found = RecallDistanceEvaluation(RecallDistanceConfig(multiple=2)).evaluate(subject)
    assert found == {"length": 32, "reason": "the model takes at most 20 tokens"}


def test_edges_that_do_not_ascend_from_one_are_refused():
    with pytest.raises(ValueError, match=r"write \[1, 3, 5\]"):
        RecallDistanceConfig(edges=(5, 3))
