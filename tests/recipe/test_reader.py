"""Y-1, Y-2, Y-4, Y-6: YAML text to plain data with origins."""

import time
import tracemalloc

import pytest

from posattn.errors import RecipeError
from posattn.recipe.reader import Origin, read_file, read_text, read_value


def refusal(text: str) -> str:
    with pytest.raises(RecipeError) as caught:
        read_text(text, "r.yaml")
    return str(caught.value)


def test_every_value_knows_its_file_line_and_column():
    document = read_text("a: 1\nb:\n  - x\n  - y: {z: 2}\n", "r.yaml")
    assert document.data == {"a": 1, "b": ["x", {"y": {"z": 2}}]}
    assert document.origins[("a",)] == Origin("r.yaml", 1, 1)
    assert document.origins[("b",)] == Origin("r.yaml", 2, 1)
    assert document.origins[("b", 0)] == Origin("r.yaml", 3, 5)
    assert document.origins[("b", 1, "y", "z")] == Origin("r.yaml", 4, 9)
    assert str(document.origin(("b", 1, "y", "z", "deeper"))) == "r.yaml:4"


def test_words_that_yaml_1_1_takes_for_booleans_stay_text_as_values_and_keys():
    text = "scheduler: off\ntags: [no, de]\nposition: {on: 1, yes: 2}\n"
    assert read_text(text, "r.yaml").data == {
        "scheduler": "off",
        "tags": ["no", "de"],
        "position": {"on": 1, "yes": 2},
    }


def test_keys_are_text_as_written():
    assert read_text("1: a\ntrue: b\n1.50: c\n", "r.yaml").data == {
        "1": "a",
        "true": "b",
        "1.50": "c",
    }


def test_quoted_and_block_scalars_are_text():
    data = read_text("a: '1e-4'\nb: \"no\"\nc: |\n  010\nd: >-\n  1\n  2\n", "r.yaml").data
    assert data == {"a": "1e-4", "b": "no", "c": "010\n", "d": "1 2"}


def test_a_duplicate_key_names_both_lines():
    message = refusal("a:\n  max_length: 1024\n  other: 1\n  max_length: 4096\n")
    assert "r.yaml:4" in message
    assert "'max_length'" in message
    assert "line 2" in message


@pytest.mark.parametrize("text", ["a: 1\n'a': 2\n", "a: {b: 1, b: 1}", "1: x\n'1': y"])
def test_a_duplicate_key_is_found_however_it_is_spelt(text):
    assert "already given" in refusal(text)


def test_an_anchor_merged_and_overridden_loads_with_the_override():
    text = "base: &b {x: 1, y: 2}\nmine:\n  <<: *b\n  y: 3\nmore: {<<: [*b, {x: 9, z: 4}]}\n"
    document = read_text(text, "r.yaml")
    assert document.data["mine"] == {"x": 1, "y": 3}
    assert document.data["more"] == {"x": 1, "y": 2, "z": 4}
    assert document.origins[("mine", "x")].line == 1
    assert document.origins[("mine", "y")].line == 4


def test_a_quoted_merge_key_is_an_ordinary_key():
    assert read_text("'<<': 1", "r.yaml").data == {"<<": 1}


def test_what_is_merged_must_be_a_mapping():
    assert "r.yaml:1" in refusal("<<: 3")


def test_an_alias_gives_equal_but_independent_values():
    data = read_text("a: &x [1, 2]\nb: *x\n", "r.yaml").data
    assert data["a"] == data["b"] == [1, 2]
    assert data["a"] is not data["b"]


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("a: *q", "no anchor"),
        ("a: &x [*x]", "part of itself"),
        ("a: &x {<<: *x}", "part of itself"),
        ("a: 1\n---\nb: 2\n", "r.yaml:2: a second document"),
        ("%YAML 1.1\n---\na: on\n", "YAML 1.2"),
        ("a:\n\tb: 1\n", "r.yaml:2: not valid YAML: a tab"),
        ("a: [1, 2\nb: 3\n", "not valid YAML"),
        ("a: b: c\n", "r.yaml:1: not valid YAML"),
        ("a: 'open\n", "not valid YAML"),
        ("ok: 1\nbell: \x07\n", "r.yaml:2: not valid YAML"),
        ("", "empty"),
        ("# only a comment\n", "empty"),
        ("- 1\n", "not a list"),
        ("text\n", "not the text 'text'"),
        ("? [a, b]\n: 1\n", "a key must be text"),
        ("a: 010\n", "r.yaml:1: the number 010"),
        ("a: !!int x\n", "'x' is not !!int"),
        ("a: !!map [1]\n", "!!map is not allowed here"),
        ("a: !secret x\n", "!secret is not allowed"),
        ("a: !!binary aGk=\n", "!!binary is not allowed"),
        ("a: !!timestamp 2024-01-01\n", "!!timestamp is not allowed"),
        ("a: " + "[" * 100 + "]" * 100, "levels deep"),
    ],
)
def test_bad_input_gives_one_clear_message(text, part):
    message = refusal(text)
    assert part in message
    assert message.startswith("r.yaml")
    assert "\n" not in message


def test_core_tags_are_honoured():
    text = "a: !!str 12\nb: !!float 3\nc: !!int 0x10\nd: !!bool true\ne: !!null ~\nf: ! 7\n"
    data = read_text(text, "r.yaml").data
    assert data == {"a": "12", "b": 3.0, "c": 16, "d": True, "e": None, "f": "7"}
    assert isinstance(data["b"], float)


def test_a_tag_that_would_run_code_is_refused_with_its_line_and_runs_nothing(tmp_path):
    canary = tmp_path / "canary"
    message = refusal(f"name: x\nrun: !!python/object/apply:os.system ['touch {canary}']\n")
    assert "r.yaml:2" in message
    assert "python/object/apply" in message
    assert not canary.exists()


BOMB = "a: &a [x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"{here}: &{here} [{', '.join(['*' + below] * 9)}]\n"
    for below, here in zip("abcdefgh", "bcdefghi", strict=True)
)
MERGE_BOMB = "a: &a {x: 1}\n" + "".join(
    f"{here}: &{here} {{<<: [{', '.join(['*' + below] * 9)}]}}\n"
    for below, here in zip("abcdefgh", "bcdefghi", strict=True)
)


BOMBS = [BOMB, MERGE_BOMB, "a: " + "[" * 30_000, "a: " + "{b: " * 9_000]


@pytest.mark.parametrize("bomb", BOMBS)
def test_a_bomb_is_refused_in_little_memory(bomb):
    tracemalloc.start()
    try:
        assert "r.yaml" in refusal(bomb)
        assert tracemalloc.get_traced_memory()[1] < 200e6
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("bomb", BOMBS)
def test_a_bomb_is_refused_within_a_second(bomb):
    start = time.process_time()
    refusal(bomb)
    assert time.process_time() - start < 1


def test_a_byte_order_mark_and_windows_line_ends_are_accepted(tmp_path):
    path = tmp_path / "r.yaml"
    path.write_bytes(b"\xef\xbb\xbfname: x\r\nsteps: 3\r\n")
    document = read_file(path)
    assert document.data == {"name": "x", "steps": 3}
    assert document.origins[("steps",)].line == 2


@pytest.mark.parametrize(
    ("raw", "part"),
    [
        (b"a: 1\nb: \xff\n", ":2: byte 8 is not UTF-8 (0xff)"),
        ("a: 1".encode("utf-16"), "UTF-16"),
        (b"#" * 600_000, "600000 bytes"),
    ],
)
def test_an_unreadable_file_is_refused_with_its_name(tmp_path, raw, part):
    path = tmp_path / "r.yaml"
    path.write_bytes(raw)
    with pytest.raises(RecipeError) as caught:
        read_file(path)
    assert str(caught.value).startswith(str(path))
    assert part in str(caught.value)


def test_a_missing_file_and_a_folder_are_refused(tmp_path):
    with pytest.raises(RecipeError, match="cannot be read"):
        read_file(tmp_path / "none.yaml")
    with pytest.raises(RecipeError, match="cannot be read"):
        read_file(tmp_path)


def test_a_single_value_of_any_kind_can_be_read():
    assert read_value("[1, {a: off}]", "--set") == [1, {"a": "off"}]
    assert read_value("", "--set") is None
