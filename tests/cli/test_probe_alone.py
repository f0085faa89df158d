"""`posattn probe` with evaluations that train nothing: of a recipe, of a run, with options."""

import json


def test_a_recipe_is_asked_without_training(posattn_command, tiny):
    options = ("--set", "encoder.backend=eager", "--set", "probe.offsets=[2]")
    code, out, _ = posattn_command("probe", "shift", tiny, *options)
    assert code == 0
    assert "shift of tiny, first weights" in out
    assert "filler 2" in out
    assert "NOT HELD" not in out


def test_a_run_is_asked_by_its_folder(posattn_command, tiny, tmp_path):
    run = tmp_path / "run"
    assert posattn_command("train", tiny, "--out", run)[0] == 0
    code, out, _ = posattn_command("probe", "attention_distance", run, "--json")
    assert code == 0
    assert [layer["name"] for layer in json.loads(out)["layers"]] == ["layer 1", "layer 2"]
    code, out, _ = posattn_command("probe", "attention_distance", run)
    assert "layer 2" in out
    code, _, err = posattn_command("probe", "shift", run, "--set", "train.steps=1")
    assert code == 2
    assert "a run keeps its recipe" in err


def test_what_trains_nothing_takes_no_seeds_and_says_what_options_are_wrong(posattn_command, tiny):
    code, _, err = posattn_command("probe", "shift", tiny, "--seeds", "1")
    assert code == 2
    assert "trains nothing" in err
    code, _, err = posattn_command("probe", "shift", tiny, "--set", "probe.offset=3")
    assert code == 2
    assert "evaluation 'shift', offset" in err
