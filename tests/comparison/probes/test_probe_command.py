"""`posattn probe` from the command line: a run of three steps, its answer, and what it refuses."""

import json

import pytest

from posattn.cli.main import run
from posattn.cli.probe import _draw
from posattn.comparison.probe_study import probe_study, probe_summary
from posattn.comparison.results import collect
from posattn.errors import RecipeError
from tests.comparison.study_folders import EIGHT_ARMS, write_study

SIZE = ["encoder.hidden_size=16", "encoder.num_layers=1", "encoder.num_heads=2"]
SIZE += ["probe.steps=3", "data.corpus.tokens=4000", "probe.length=8", "data.corpus.num_symbols=6"]


def test_options_of_probe_and_recipe_are_told_apart():
    study = probe_study("offset", "rope", [0, 4], [*SIZE, "probe.offset=2"])
    assert (study.name, study.seeds, study.baseline) == ("offset-rope", (0, 4), "rope")
    assert (study.probe.offset, study.probe.length) == (2, 8)
    assert study.shared["encoder"]["num_layers"] == 1


def test_what_is_neither_is_refused():
    with pytest.raises(RecipeError, match="'seeds' is no section of a recipe"):
        probe_study("offset", "rope", [0], ["seeds=[1]"])
    with pytest.raises(RecipeError, match="did you mean 'offset'"):
        probe_study("ofset", "rope")


def test_the_command_trains_measures_and_tells_what_held(text_cache, tmp_path, capsys):
    out = ["--out", str(tmp_path / "out")]
    sets = [word for item in SIZE for word in ("--set", item)]
    with pytest.raises(SystemExit) as ended:
        run(["probe", "offset", "none", *out, *sets, "--json"])
    assert ended.value.code == 0
    found = json.loads(capsys.readouterr().out)
    assert found["probe"]["name"] == "offset"
    assert [item["multiple"] for item in found["lengths"]] == [1, 2, 4]
    assert found["accuracy"]["0"] == found["lengths"][0]["values"]["0"]
    assert [p["verdict"] for p in found["predictions"]] == ["held"]
    with pytest.raises(SystemExit) as ended:  # nothing left to train
        run(["probe", "offset", "none", *out, *sets])
    text = capsys.readouterr().out
    assert "Prediction and outcome" in text
    assert "Accuracy by length" in text


def test_seeds_that_are_no_numbers_are_refused(capsys):
    with pytest.raises(SystemExit) as ended:
        run(["probe", "offset", "none", "--seeds", "a,b"])
    assert ended.value.code == 2
    assert "whole numbers" in capsys.readouterr().err


def test_loss_beyond_the_trained_length_is_what_the_report_says(tmp_path, capsys):
    write_study(tmp_path, EIGHT_ARMS[:1], speed=False)
    study = probe_study("length", "rope", [0], ["probe.multiples=[1, 2]"])
    assert study.evaluations[1].multiples == (1, 2)
    found = collect(tmp_path)
    _draw(found, "length")
    text = capsys.readouterr().out.replace("\n", " ")
    assert "Validation loss by sequence" in " ".join(text.split())
    assert probe_summary(found)["lengths"][0]["length"] == found.arms[0].length[0].length


def test_text_far_from_all_evidence_is_a_study_of_that_evaluation():
    study = probe_study("evidence_distance", "rope", [0], ["probe.spans=[1, 8]"])
    assert [item.name for item in study.evaluations] == ["validation", "evidence_distance"]
    assert study.evaluations[1].spans == (1, 8)
    assert study.probe is None
