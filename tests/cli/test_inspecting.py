"""`posattn inspect` on recipes, runs and checkpoints."""

import json
import re

import pytest

from posattn.checkpoints.opened import open_model
from posattn.errors import DataError

TEXT = "To be, or not to be."


@pytest.fixture
def text(tmp_path):
    """A file with some text."""
    path = tmp_path / "text.txt"
    path.write_text(TEXT)
    return path


def test_shares_of_a_recipe_sum_to_1_as_json(posattn_command, tiny, text):
    code, out, _ = posattn_command("inspect", tiny, "--text", text, "--json", "--length", 12)
    assert code == 0
    found = json.loads(out)
    assert found["tokens"][:3] == ["[CLS]", "T", "o"]
    assert len(found["tokens"]) == 12
    assert [layer["name"] for layer in found["layers"]] == ["layer 1", "layer 2"]
    for layer in found["layers"]:
        parts = zip(*(term["share"] for term in layer["terms"].values()), strict=True)
        assert [sum(part) for part in parts] == pytest.approx([1.0] * 4)


def test_the_terminal_shows_shares_profiles_and_heat_maps_of_a_head(posattn_command, tiny, text):
    arguments = ("--set", "encoder.mechanism=transformer_xl", "--layer", 2, "--head", 3)
    code, out, _ = posattn_command("inspect", tiny, "--text", text, *arguments)
    assert code == 0
    assert "layer 1" not in out
    assert re.search(r"layer 2: share \(size in logits\)", out)
    assert "layer 2: mean by distance, query minus key" in out
    for term in ("a", "b", "c", "d", "logits"):
        assert f"layer 2, head 3, {term}: orange raises, blue lowers" in out


def test_a_page_needs_nothing_from_elsewhere_and_has_its_numbers_beside_it(
    posattn_command, tiny, text, tmp_path
):
    decoder = ("--set", "decoder.name=emd")
    out = tmp_path / "page"
    code, _, _ = posattn_command("inspect", tiny, "--text", text, *decoder, "--out", out)
    assert code == 0
    page = (out / "inspect.html").read_text()
    assert not re.findall(r'(?:src|href)="(?!#)[^"]*"', page)
    assert 'id="decoder_pass_2"' in page
    table = (out / "figures" / "layer_1-head_1.csv").read_text().splitlines()
    assert table[0] == "term,query,query_token,key,key_token,value"
    assert len(table) == 1 + 3 * 21**2  # content, rotation and their sum over 21 tokens
    assert (out / "figures" / "shares.svg").read_text().startswith("<svg")


def test_a_run_is_inspected_with_its_trained_weights(posattn_command, tiny, text, tmp_path):
    run = tmp_path / "run"
    assert posattn_command("train", tiny, "--out", run)[0] == 0
    shares = {}
    for model in (run, run / "final", tiny):
        code, out, _ = posattn_command("inspect", model, "--text", text, "--json")
        assert code == 0
        shares[str(model)] = json.loads(out)["layers"][0]["terms"]["content"]["share"]
    assert shares[str(run)] == shares[str(run / "final")] != shares[tiny]


def test_mistakes_are_said_with_what_there_is(posattn_command, tiny, text, tmp_path):
    def error(*arguments):
        code, _, err = posattn_command("inspect", *arguments)
        assert code != 0
        return err

    assert "there is no layer 3; there are 2" in error(tiny, "--text", text, "--layer", 3)
    assert "there is no head 5; heads are 1 to 4" in error(tiny, "--text", text, "--head", 5)
    assert "cannot be read" in error(tiny, "--text", tmp_path / "missing.txt")
    assert "there is no recipe" in error("nothing", "--text", text)
    (tmp_path / "status.json").write_text("{}")
    assert "has not finished" in error(tmp_path, "--text", text)


def test_rows_are_framed_as_in_training(tiny):
    padded = open_model(tiny, ["data.layout=padded"])
    assert padded.encode(TEXT, 6)[1] == ["[CLS]", "T", "o", " ", "b", "[SEP]"]
    plain = open_model(tiny, ["data.cls=false"])
    assert plain.encode(TEXT, 3)[1] == ["T", "o", " "]
    with pytest.raises(DataError, match="no token"):
        plain.encode("", 3)
