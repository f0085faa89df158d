"""The feed-forward width that gives a model a number of parameters."""

import pytest

from posattn.comparison.budgets.width import count_parameters, matched_width
from posattn.comparison.plan import make_plan
from posattn.comparison.study import load_study
from posattn.errors import RecipeError

VOCABULARY = 50


def recipes(*overrides):
    plan = make_plan(load_study("smoke", overrides))
    return {arm.name: arm.recipe for arm in plan.arms}


@pytest.mark.parametrize(("activation", "multiple"), [("gelu", 1), ("geglu", 8)])
def test_neither_neighbour_of_the_width_comes_nearer(activation, multiple):
    arms = recipes(f"encoder.activation={activation}", "arms.xl.encoder.mechanism=transformer_xl")
    for name, base in (("learned", "xl"), ("xl", "learned")):
        target = count_parameters(arms[base], VOCABULARY)
        width = matched_width(arms[name], target, VOCABULARY, multiple)
        assert width % multiple == 0
        distances = {
            other: abs(count_parameters(arms[name], VOCABULARY, other) - target)
            for other in (width - multiple, width, width + multiple)
            if other >= multiple
        }
        assert distances[width] == min(distances.values())


def test_a_model_that_fits_already_keeps_its_width():
    rope = recipes()["rope"]
    target = count_parameters(rope, VOCABULARY)
    assert matched_width(rope, target, VOCABULARY) == rope.encoder.inner_size()


def test_a_target_out_of_reach_names_the_least_and_the_target():
    rope = recipes()["rope"]
    least = count_parameters(rope, VOCABULARY, 8)
    with pytest.raises(RecipeError) as error:
        matched_width(rope, 5000, VOCABULARY, 8)
    assert "the arm 'rope'" in str(error.value)
    assert f"of 8, the least there is, it has {least:,} parameters" in str(error.value)
    assert "the baseline has 5,000" in str(error.value)
