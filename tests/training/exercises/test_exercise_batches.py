"""Exercises in batches: fixed by (seed, epoch, sample), with given positions, on the corpus `symbols`."""

import numpy as np
import pytest
import torch
from pydantic import TypeAdapter

from posattn.recipe.build import build
from posattn.recipe.schema import load_recipe
from posattn.training.batches import IGNORE, BatchStream, validation_batches
from posattn.training.forward import run_batch
from posattn.training.objectives import AnyObjectiveConfig
from posattn.training.text import DataConfig
from posattn.training.text.prepare import prepare

HIDDEN = TypeAdapter(AnyObjectiveConfig).validate_python(
    {"name": "twin_masks", "edges": "hidden", "period": 4, "classes": 2}
)


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("POSATTN_CACHE", str(tmp_path_factory.mktemp("cache")))
        yield prepare(
            DataConfig.model_validate(
                {
                    "corpus": {"name": "symbols", "num_symbols": 7, "tokens": 3000},
                    "tokenizer": {"name": "characters"},
                    "max_length": 16,
                    "cls": False,
                    "validation_fraction": 0.2,
                }
            )
        )


def test_symbols_are_uniform_numbered_in_order_and_have_a_checksum(corpus):
    ordinary = corpus.train.vocabulary.ordinary
    tokens = np.asarray(corpus.train.tokens[:-1])
    assert [corpus.tokenizer.token(i) for i in ordinary.tolist()] == list("0123456")
    assert np.bincount(tokens)[ordinary] == pytest.approx(np.full(7, len(tokens) / 7), rel=0.2)
    assert corpus.info.licence.startswith("CC0")
    assert len(corpus.info.files[0].sha256) == 64


def rows_by_sample(batches):
    found = {}
    for batch in batches:
        for row, sample in enumerate(batch.sample_ids.tolist()):
            parts = (batch.ids[row], batch.targets[row], batch.positions[row])
            found[sample] = [part.tolist() for part in parts]
    return found


def test_a_row_does_not_depend_on_the_batch_it_is_in(corpus):
    streams = [BatchStream(corpus.train, HIDDEN, batch_size=size, seed=3) for size in (4, 9)]
    small, large = (rows_by_sample(stream.epoch(1)) for stream in streams)
    assert small == large
    other_epoch = rows_by_sample(streams[0].epoch(2))
    assert sum(small[sample] != other_epoch[sample] for sample in small) > len(small) / 2


def test_validation_is_fixed_whatever_the_batch_size(corpus):
    small, large = (
        rows_by_sample(validation_batches(corpus.validation, HIDDEN, batch_size=size, seed=0))
        for size in (2, 7)
    )
    assert small == large
    assert len({tuple(positions) for _, _, positions in small.values()}) > 3


def test_positions_are_part_of_the_digest(corpus):
    batch = BatchStream(corpus.train, HIDDEN, batch_size=4, seed=0).batch(0, 0)
    moved = type(batch)(**{**vars(batch), "positions": batch.positions + 1})
    assert moved.digest() != batch.digest()
    assert batch.to("cpu").positions.equal(batch.positions)


def test_the_model_gets_the_positions_that_are_given(corpus):
    recipe = load_recipe(
        "learned",
        {
            "encoder.hidden_size": 16,
            "encoder.num_layers": 1,
            "encoder.num_heads": 2,
            "objective": HIDDEN.model_dump(),
        },
    )
    model = build(recipe, corpus.tokenizer.vocab_size).eval()
    batch = BatchStream(corpus.train, HIDDEN, batch_size=4, seed=0).batch(0, 0)
    given = run_batch(model, batch, torch.device("cpu"), "float32").logits
    expected = model(batch.ids, positions=batch.positions, selected=batch.targets != IGNORE).logits
    counted = run_batch(
        model, type(batch)(**{**vars(batch), "positions": None}), torch.device("cpu"), "float32"
    ).logits
    assert torch.equal(given, expected)
    assert not torch.allclose(given, counted)
