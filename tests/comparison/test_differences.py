"""Differences of recipes as dotted paths."""

from posattn.comparison.differences import describe, differences, split, under, written_changes
from posattn.recipe.difference import ABSENT

ROPE = {"encoder": {"mechanism": [{"name": "rope", "base": 10000}], "layers": 4}, "steps": 10}
LEARNED = {"encoder": {"mechanism": [{"name": "learned", "rows": 512}], "layers": 4}, "steps": 10}


def test_equal_recipes_do_not_differ() -> None:
    assert differences(ROPE, ROPE) == {}


def test_every_leaf_that_differs_is_listed_with_both_values() -> None:
    assert differences(ROPE, LEARNED) == {
        "encoder.mechanism.0.name": ("rope", "learned"),
        "encoder.mechanism.0.base": (10000, ABSENT),
        "encoder.mechanism.0.rows": (ABSENT, 512),
    }


def test_one_and_true_and_one_point_zero_are_three_values() -> None:
    assert set(differences({"a": 1, "b": 1}, {"a": 1.0, "b": True})) == {"a", "b"}


def test_a_prefix_covers_what_is_below_it_and_not_what_only_begins_alike() -> None:
    assert under("encoder.mechanism.0.name", ["encoder.mechanism"])
    assert under("encoder.mechanism", ["encoder.mechanism"])
    assert not under("encoder.mechanisms", ["encoder.mechanism"])


def test_numbers_of_list_items_may_be_left_out_of_a_prefix() -> None:
    assert under("encoder.mechanism.0.base", ["encoder.mechanism.base"])
    assert not under("encoder.mechanism.0.name", ["encoder.mechanism.base"])
    assert not under("encoder.mechanism.1.base", ["encoder.mechanism.0.base"])


def test_differences_are_split_into_declared_and_undeclared() -> None:
    found = differences(ROPE, {**LEARNED, "steps": 11})
    inside, outside = split(found, ["encoder.mechanism"])
    assert set(outside) == {"steps"}
    assert len(inside) == 3
    assert describe(outside, "'rope'", "'x'") == "  steps: 'rope' has 10, 'x' has 11"
    assert "base: 'rope' has 10000, 'x' has nothing" in describe(inside, "'rope'", "'x'")


def test_a_choice_with_its_options_stays_whole() -> None:
    overrides = {"encoder": {"mechanism": {"name": "rope", "base": 5}, "norm": {"eps": 1e-5}}}
    assert written_changes(overrides) == {
        "encoder.mechanism": {"name": "rope", "base": 5},
        "encoder.norm.eps": 1e-5,
    }
