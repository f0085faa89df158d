"""The merge rule: extends, arms and --set alike."""

import pytest

from posattn.errors import RecipeError
from posattn.recipe.merge import merge, override, parse_override, read_overrides
from posattn.recipe.reader import Document, Origin, read_text


def merged(base: str, over: str) -> Document:
    return merge(read_text(base, "base.yaml"), read_text(over, "over.yaml"))


def test_mappings_merge_key_by_key_and_the_rest_replaces():
    document = merged("a: {x: 1, y: [1, 2]}\nb: 1\n", "a: {y: [3], z: 4}\nb: {c: 1}\n")
    assert document.data == {"a": {"x": 1, "y": [3], "z": 4}, "b": {"c": 1}}


def test_a_mapping_with_another_name_replaces_the_inherited_one_whole():
    document = merged("m: {name: rope, base: 5}", "m: {name: alibi}")
    assert document.data == {"m": {"name": "alibi"}}
    assert ("m", "base") not in document.origins


def test_a_mapping_with_the_same_name_or_none_keeps_the_inherited_options():
    assert merged("m: {name: rope, base: 5}", "m: {name: rope, k: 1}").data["m"]["base"] == 5
    assert merged("m: {name: rope, base: 5}", "m: {k: 1}").data["m"]["base"] == 5


def test_the_name_of_the_recipe_itself_replaces_nothing():
    assert merged("name: a\nb: 1", "name: c").data == {"name": "c", "b": 1}


def test_options_over_a_bare_name_belong_to_it():
    assert merged("m: rope", "m: {base: 5}").data == {"m": {"name": "rope", "base": 5}}
    assert merged("m: rope", "m: {name: alibi}").data == {"m": {"name": "alibi"}}


def test_a_list_of_mechanisms_gives_way_to_a_single_one_and_the_other_way_round():
    assert merged("m: [{name: rope}]", "m: {name: alibi}").data == {"m": {"name": "alibi"}}
    assert merged("m: {name: alibi}", "m: [rope]").data == {"m": ["rope"]}


def test_each_value_remembers_the_file_it_came_from():
    document = merged("a:\n  x: 1\n  y: 2\n", "# top\na:\n  y: 3\n")
    assert str(document.origin(("a", "x"))) == "base.yaml:2"
    assert str(document.origin(("a", "y"))) == "over.yaml:3"


def test_the_inputs_are_left_as_they_were():
    base, over = read_text("a: {x: 1}", "b"), read_text("a: {x: 2}", "o")
    merge(base, over)
    assert base.data == {"a": {"x": 1}}
    assert base.origins[("a", "x")] == Origin("b", 1, 5)


@pytest.mark.parametrize(
    ("text", "path", "value"),
    [
        ("train.steps=10", ("train", "steps"), 10),
        ("train.learning_rate=1e-4", ("train", "learning_rate"), 1e-4),
        ("encoder.mechanism={name: rope, base: 500}", ("encoder", "mechanism"), None),
        ("name=a=b", ("name",), "a=b"),
        ("a.b=", ("a", "b"), None),
        ("a.b=off", ("a", "b"), "off"),
    ],
)
def test_an_override_is_read_as_yaml(text, path, value):
    item = parse_override(text)
    assert item.path == path
    if "{" not in text:
        assert item.value == value
    assert str(item.origin) == f"--set {text}"


@pytest.mark.parametrize("text", ["train.steps", "=3", "a..b=1", ".a=1", "a. b=1", "extends=x"])
def test_a_malformed_override_is_refused(text):
    with pytest.raises(RecipeError, match="--set"):
        parse_override(text)


def test_a_value_that_is_not_yaml_names_the_override():
    with pytest.raises(RecipeError, match=r"--set a=\[1"):
        parse_override("a=[1")


def test_an_override_reaches_into_a_list_by_number():
    base = read_text("m:\n  - {name: none}\n  - {name: rope, base: 5}\n", "b.yaml")
    document = merge(base, parse_override("m.1.base=7").document())
    assert document.data == {"m": [{"name": "none"}, {"name": "rope", "base": 7}]}
    assert str(document.origin(("m", 1, "base"))) == "--set m.1.base=7"
    assert str(document.origin(("m", 1, "name"))) == "b.yaml:3"


def test_overrides_come_as_texts_or_as_a_mapping():
    assert read_overrides({"a.b": {"c": 1}})[0].path == ("a", "b")
    item = override("a", 1, Origin("s.yaml", 3))
    assert read_overrides([item, "b=2"])[0] is item
    with pytest.raises(RecipeError, match="list of texts"):
        read_overrides("a=1")


def test_a_mapping_over_a_list_of_one_merges_with_the_one():
    base = read_text("m:\n  - name: rope\n    base: 5\n", "b.yaml")
    document = merge(base, parse_override("m.k=7").document())
    assert document.data == {"m": {"name": "rope", "base": 5, "k": 7}}
    assert str(document.origin(("m", "base"))) == "b.yaml:3"
    assert str(document.origin(("m", "k"))) == "--set m.k=7"
    other = merge(base, parse_override("m={name: alibi}").document())
    assert other.data == {"m": {"name": "alibi"}}
    assert merge(read_text("m: [rope]", "b"), parse_override("m.k=7").document()).data == {
        "m": {"name": "rope", "k": 7}
    }
