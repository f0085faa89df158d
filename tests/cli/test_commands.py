"""The commands that look at recipes: list, validate, show, diff, schema."""

import json

import pytest

import posattn
from posattn.cli.main import run


def test_the_version_is_printed(posattn_command):
    assert posattn_command("--version") == (0, f"posattn {posattn.__version__}\n", "")


@pytest.mark.parametrize(
    "command", ["list", "validate", "show", "diff", "schema", "train", "compare", "report", "bench"]
)
def test_every_command_has_help_with_examples(posattn_command, command):
    code, out, _ = posattn_command(command, "--help")
    assert code == 0
    assert "Example" in out
    assert f"posattn {command}" in " ".join(out.split())


def test_wrong_usage_exits_with_2(posattn_command):
    for arguments in (
        ["nothing"],
        ["validate"],
        ["list", "shoes"],
        ["compare", "quick"],
        ["--wrong"],
    ):
        code, _, err = posattn_command(*arguments)
        assert code == 2
        assert err


@pytest.mark.parametrize(
    ("kind", "name"),
    [
        ("mechanisms", "rope"),
        ("backends", "eager"),
        ("decoders", "emd"),
        ("recipes", "quick/rope"),
        ("studies", "quick"),
        ("corpora", "pydoc"),
        ("tokenizers", "characters"),
        ("objectives", "mlm"),
        ("evaluations", "validation"),
    ],
)
def test_everything_a_recipe_can_name_is_listed(posattn_command, kind, name):
    code, out, _ = posattn_command("list", kind)
    assert code == 0
    assert name in out
    code, out, _ = posattn_command("list", kind, "--json")
    row = next(row for row in json.loads(out) if row["name"] == name)
    assert code == 0
    assert row["summary"]
    if kind == "mechanisms":
        assert row["options"]["base"] == 10000.0
        assert row["from"] == "posattn"


def test_a_valid_recipe_exits_with_0_and_says_what_it_is(posattn_command, tiny):
    code, out, err = posattn_command("validate", tiny)
    assert (code, err) == (0, "")
    assert "tiny: valid recipe" in out
    assert "parameters, backend" in out
    code, out, _ = posattn_command("validate", "rope", "--json")
    assert json.loads(out)["valid"] is True


def test_a_study_can_be_validated_by_name(posattn_command):
    code, out, err = posattn_command("validate", "quick")
    assert code == 0, err
    assert "valid study" in out


@pytest.mark.parametrize(
    "override",
    [
        "train.learning-rate=1",
        "lr=1",
        "train.lrr=1",
        "encoder.mechanism={name: alibi, num_buckets: 32}",
        "encoder.num_heads=5",
        "encoder.mechanism={name: learned, max_positions: 8}",
        "train.steps=[1",
        "train.steps",
        "encoder.backend=none",
    ],
)
def test_a_bad_recipe_exits_with_2_and_one_message(posattn_command, tiny, override):
    code, out, err = posattn_command("validate", tiny, "--set", override)
    assert (code, out) == (2, "")
    assert err.startswith("Error: ")
    assert override.split("=")[0].split(".")[-1] in err
    assert "Traceback" not in err


def test_a_missing_recipe_exits_with_2_and_names_the_nearest(posattn_command, tmp_path):
    code, _, err = posattn_command("validate", "roep")
    assert code == 2
    assert "did you mean 'quick/rope'" in err
    assert posattn_command("show", tmp_path / "none.yaml")[0] == 2


def test_a_bad_recipe_says_so_in_json_too(posattn_command, tiny):
    code, out, err = posattn_command("validate", tiny, "--json", "--set", "lr=1")
    assert code == 2
    assert json.loads(out)["valid"] is False
    assert json.loads(out)["error"] in err


def test_what_is_shown_is_a_recipe_again(posattn_command, tiny, tmp_path):
    code, out, _ = posattn_command("show", tiny, "--set", "train.steps=7")
    assert code == 0
    again = tmp_path / "again.yaml"
    again.write_text(out)
    assert posattn.load_recipe(again).train.steps == 7
    assert posattn_command("diff", again, tiny)[0] == 1
    code, out, _ = posattn_command("show", tiny, "--json")
    assert json.loads(out)["train"]["steps"] == 3


def test_the_card_is_shown_for_people_and_for_programs(posattn_command):
    code, out, _ = posattn_command("show", "disentangled", "--card")
    assert code == 0
    assert "architecture contract" in out
    assert "c2c, c2p, p2c" in out
    card = json.loads(posattn_command("show", "disentangled", "--card", "--json")[1])
    assert card["mechanism"]["name"] == "disentangled"
    assert card["parameters"]["total"] > 800_000


def test_diff_exits_with_0_for_the_same_and_1_for_different_recipes(posattn_command, tiny):
    assert posattn_command("diff", "quick/none", "quick/base") == (0, "", "")
    code, out, _ = posattn_command("diff", "rope", "alibi")
    assert code == 1
    assert 'name: "rope" -> "alibi"' in out
    assert "(absent)" in out
    code, out, _ = posattn_command("diff", "rope", tiny, "--json")
    assert code == 1
    assert json.loads(out)["encoder.hidden_size"] == {"a": 128, "b": 32}
    assert posattn_command("diff", "rope", "nothing.yaml")[0] == 2


def test_the_schema_is_json(posattn_command):
    code, out, _ = posattn_command("schema")
    assert code == 0
    assert json.loads(out)["title"] == "posattn recipe"


def test_what_the_system_refuses_is_one_message(posattn_command, monkeypatch, tiny):
    def full(*_):
        raise OSError(28, "No space left on device", "recipe.yaml")

    monkeypatch.setattr("posattn.recipe.schema.dump_recipe", full)
    code, _, err = posattn_command("show", tiny)
    assert (code, err) == (1, "Error: [Errno 28] No space left on device: 'recipe.yaml'\n")


def test_an_unexpected_error_is_not_swallowed(monkeypatch, tiny):
    def broken(*_):
        raise RuntimeError("a fault of ours")

    monkeypatch.setattr("posattn.recipe.schema.load_recipe", broken)
    with pytest.raises(RuntimeError, match="a fault of ours"):
        run(["show", tiny])
