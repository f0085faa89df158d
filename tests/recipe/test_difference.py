"""Where two recipes differ."""

from posattn.recipe.difference import ABSENT, differences, flatten
from posattn.recipe.schema import load_recipe


def test_equal_recipes_do_not_differ_whatever_they_are_called(tiny):
    assert differences(load_recipe(tiny), load_recipe(tiny, ["name=x", "description=y"])) == {}


def test_differences_have_dotted_paths_and_both_values(tiny):
    found = differences(
        load_recipe(tiny),
        load_recipe(tiny, ["train.steps=9", "encoder.mechanism={name: none}"]),
    )
    assert found["train.steps"] == (3, 9)
    assert found["encoder.mechanism.0.name"] == ("rope", "none")
    assert found["encoder.mechanism.0.base"] == (10000.0, ABSENT)


def test_leaves_are_found_in_lists_and_empty_parts_are_leaves():
    assert flatten({"a": [{"b": 1}, []], "c": {}}) == {"a.0.b": 1, "a.1": [], "c": {}}
