"""Swaps: what is kept, what is new, starts from the old mechanism, training on, and a study of both."""

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from typer.testing import CliRunner

import posattn
import posattn.cli.main  # adds the commands
from posattn.checkpoints import import_checkpoint
from posattn.checkpoints.swap import swap_checkpoint
from posattn.cli.app import app
from posattn.comparison.run import run_study
from posattn.comparison.study import load_study
from posattn.errors import CheckpointError, RecipeError
from posattn.recipe.run import train_recipe
from posattn.recipe.schema import load_recipe
from posattn.training.durable import read_json
from tests.checkpoints.originals import KINDS, made

WORDS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "a", "b", "the", "of", "is"]
QUICK: dict[str, Any] = {
    "data.max_length": 8,
    "train.steps": 1,
    "train.batch_size": 8,
    "train.evaluation_tokens": 2000,
}


@pytest.fixture
def bert(tmp_path: Path) -> Path:
    made(KINDS["bert"]).save_pretrained(tmp_path / "theirs")
    (tmp_path / "theirs" / "vocab.txt").write_text("\n".join(WORDS) + "\n")
    import_checkpoint(tmp_path / "theirs", tmp_path / "bert")
    return tmp_path / "bert"


@pytest.fixture
def deberta(tmp_path: Path) -> Path:
    made(KINDS["deberta"]).save_pretrained(tmp_path / "theirs")
    import_checkpoint(tmp_path / "theirs", tmp_path / "deberta")
    return tmp_path / "deberta"


def test_what_is_shared_is_kept_and_the_rest_is_named(bert: Path, tmp_path: Path) -> None:
    words = ["swap", str(bert), "--set", "encoder.mechanism.name=t5", "--set", "train.seed=7"]
    shown = CliRunner().invoke(app, [*words, "--out", str(tmp_path / "out")])
    assert "left out: encoder.position.mechanisms.learned.table.weight" in shown.stdout
    assert "new: encoder.position.mechanisms.t5.table.weight" in shown.stdout
    assert "0 started from the old mechanism, 1 new by seed 7 and name, 1 left out" in shown.stdout
    first, swapped = (
        posattn.from_pretrained(folder).tensors() for folder in (bert, tmp_path / "out")
    )
    for name in first.keys() & swapped.keys():
        assert torch.equal(first[name], swapped[name])
    as_json = CliRunner().invoke(app, [*words, "--out", str(tmp_path / "again"), "--json"])
    record = json.loads(as_json.stdout)
    assert record == read_json(tmp_path / "again" / "swap.json")
    assert record["changes"] == ["encoder.mechanism.name=t5", "train.seed=7"]
    again = posattn.from_pretrained(tmp_path / "again").tensors()
    assert all(torch.equal(again[name], tensor) for name, tensor in swapped.items())


def test_a_mechanism_without_weights_needs_no_new_ones(bert: Path, tmp_path: Path) -> None:
    done = swap_checkpoint(bert, tmp_path / "out", ["encoder.mechanism.name=rope"])
    assert (done.new, done.started) == ((), ())
    assert posattn.from_pretrained(tmp_path / "out").recipe.encoder.mechanism[0].name == "rope"


def test_learned_positions_start_a_bias_by_distance(bert: Path, tmp_path: Path) -> None:
    done = swap_checkpoint(bert, tmp_path / "out", ["encoder.mechanism=t5"], from_old=True)
    assert done.started == ("encoder.position.mechanisms.t5.table.weight",)
    assert "R^2 by head" in done.how
    assert "layer 0, for 24 positions" in done.how
    old = posattn.from_pretrained(bert).tensors()
    table = posattn.from_pretrained(tmp_path / "out").tensors()[done.started[0]]
    rows = old["encoder.position.mechanisms.learned.table.weight"]
    query, key = (
        (rows @ old[f"encoder.layers.0.attention.{name}_proj.weight"].T).unflatten(1, (4, -1))
        for name in ("query", "key")
    )
    scores = torch.einsum("ihd,jhd->hij", query, key) / 6**0.5
    fitted = torch.zeros(4, 24, 24)
    for i in range(24):
        for j in range(24):
            fitted[:, i, j] = table[_bucket(i - j)]
    left = scores - fitted
    left -= left.mean(-1, keepdim=True)
    for bucket in {_bucket(d) for d in range(-23, 24)}:  # no bucket has anything left to explain
        inside = torch.tensor([[_bucket(i - j) == bucket for j in range(24)] for i in range(24)])
        assert left[:, inside].sum(-1).abs().max() < 1e-3


def _bucket(distance: int) -> int:
    from posattn.positions import t5_buckets

    return int(t5_buckets(torch.tensor([distance]), 32, 128, True))


@pytest.mark.parametrize("projections", ["own", "shared"])
def test_learned_positions_start_a_disentangled_table(
    projections: str, bert: Path, tmp_path: Path
) -> None:
    options = "{name: disentangled, norm_table: false, projections: " + projections
    options += ", buckets: {name: clipped, max_distance: 8}}"
    done = swap_checkpoint(bert, tmp_path / "out", [f"encoder.mechanism={options}"], from_old=True)
    assert done.new == ()
    assert "R^2 of the rows" in done.how
    assert ("copies of the content projections" in done.how) == (projections == "own")
    found = posattn.from_pretrained(tmp_path / "out").tensors()
    table = found["encoder.position.mechanisms.disentangled.table.weight"]
    assert table.isfinite().all()
    assert table.abs().max() > 1e-3


def test_a_table_gets_longer_or_other_buckets(deberta: Path, tmp_path: Path) -> None:
    name = "encoder.position.mechanisms.disentangled.table.weight"
    old = posattn.from_pretrained(deberta).tensors()[name]
    longer = swap_checkpoint(
        deberta, tmp_path / "a", ["encoder.mechanism.buckets.max_distance=12"], from_old=True
    )
    assert longer.started == (name,)
    table = posattn.from_pretrained(tmp_path / "a").tensors()[name]
    assert torch.equal(table[4:20], old)  # 12 - 8 more rows on either side
    assert torch.equal(table[:4], old[:1].expand(4, -1))
    assert torch.equal(table[20:], old[-1:].expand(4, -1))
    buckets = "encoder.mechanism.buckets={name: log, num_buckets: 4, max_distance: 8}"
    swap_checkpoint(deberta, tmp_path / "b", [buckets], from_old=True)
    table = posattn.from_pretrained(tmp_path / "b").tensors()[name]
    assert len(table) == 8
    assert torch.equal(table[4], old[8])  # distance 0
    assert torch.equal(table[5], old[9])  # distance 1


def test_longer_buckets_compute_the_same_where_the_old_table_reached(
    deberta: Path, tmp_path: Path
) -> None:
    swap_checkpoint(
        deberta, tmp_path / "a", ["encoder.mechanism.buckets.max_distance=30"], from_old=True
    )
    ids = torch.randint(3, 31, (2, 20))
    first, second = (
        posattn.from_pretrained(folder).encoder(ids) for folder in (deberta, tmp_path / "a")
    )
    assert torch.allclose(first, second, atol=1e-5)  # distances past 8 have the old last rows


def test_rotations_are_rescaled_without_weights(bert: Path, tmp_path: Path) -> None:
    swap_checkpoint(bert, tmp_path / "rope", ["encoder.mechanism=rope"])
    options = ["encoder.mechanism.scaling={kind: linear, factor: 4.0}"]
    done = swap_checkpoint(tmp_path / "rope", tmp_path / "longer", options, from_old=True)
    assert (done.new, done.started, done.dropped) == ((), (), ())
    assert "now turn with scaling" in done.how


def test_what_means_nothing_is_refused_and_nothing_is_written(
    bert: Path, deberta: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    with pytest.raises(RecipeError, match="decoder and head stay as they are"):
        swap_checkpoint(bert, out, ["train.steps=4"])
    with pytest.raises(
        CheckpointError, match=r"no way is known from learned to alibi \(known: learned to t5"
    ):
        swap_checkpoint(bert, out, ["encoder.mechanism=alibi"], from_old=True)
    with pytest.raises(CheckpointError, match="a normalised table cannot take values"):
        swap_checkpoint(bert, out, ["encoder.mechanism=disentangled"], from_old=True)
    wide = ["encoder.hidden_size=8", "encoder.mechanism.buckets.max_distance=9"]
    with pytest.raises(CheckpointError, match=r"gives encoder.*another form than the new one"):
        swap_checkpoint(deberta, out, wide, from_old=True)
    assert not out.exists()


def test_training_continues_and_a_study_compares_with_the_unswapped(
    bert: Path, tmp_path: Path
) -> None:
    swap_checkpoint(bert, tmp_path / "rope", ["encoder.mechanism.name=rope"])
    result = train_recipe(load_recipe(tmp_path / "rope" / "recipe.yaml", QUICK), tmp_path / "run")
    assert result.state == "finished"
    lines = [
        "name: swapped",
        f"base: {bert / 'recipe.yaml'}",
        "varies: [encoder.mechanism]",
        "compensations: {train.start: the weights that the swap left}",
        "arms:",
        "  as_it_was: {}",
        "  rope:",
        "    encoder.mechanism: {name: rope}",
        f"    train.start: {{path: {tmp_path / 'rope'}}}",
        "baseline: as_it_was",
        "seeds: [0]",
        "primary: validation_loss",
        "evaluations: [{name: validation}]",
    ]
    (tmp_path / "study.yaml").write_text("\n".join(lines) + "\n")
    study = load_study(tmp_path / "study.yaml", QUICK)
    done = run_study(study, tmp_path / "study", jobs=1)
    assert [run.state for run in done.runs] == ["finished", "finished"]
