"""Budgets of arms: each matching from its own arithmetic, and what is refused."""

import pytest

from posattn.comparison.budgets.match import matched
from posattn.comparison.budgets.text import TextCounts
from posattn.comparison.budgets.width import count_parameters
from posattn.comparison.plan import make_plan
from posattn.comparison.settle import is_settled
from posattn.comparison.study import load_study
from posattn.errors import RecipeError
from posattn.recipe.flops import count_flops

XL = "arms.xl.encoder.mechanism=transformer_xl"
TEXT = TextCounts(vocab_size=50, rows=1000, tokens_per_row=32.0)


def no_times(recipes):
    raise AssertionError("nothing is timed for this budget")


def match(*overrides, text=TEXT, times=no_times):
    study = load_study("smoke", [XL, *overrides])
    recipes = {arm.name: arm.recipe for arm in make_plan(study).arms}
    return make_plan(matched(study, recipes, lambda recipe: text, times), study)


def recipes_of(plan):
    return {arm.name: arm.recipe for arm in plan.arms}


def test_steps_are_the_default_and_change_nothing():
    study = load_study("smoke", [XL])
    assert is_settled(study)
    assert matched(study, {}, lambda recipe: TEXT, no_times) is study
    assert "match" not in make_plan(study).to_json()


def test_operations_are_equal_up_to_one_step():
    plan = match("match=flops", "train.steps=1000")
    totals = {
        name: recipe.train.steps * count_flops(recipe, vocab_size=50).total
        for name, recipe in recipes_of(plan).items()
    }
    one_step = count_flops(recipes_of(plan)["xl"], vocab_size=50).total
    assert recipes_of(plan)["xl"].train.steps < 1000
    assert abs(totals["xl"] - totals["learned"]) <= one_step / 2
    assert totals["rope"] == totals["learned"]


def test_tokens_are_equal_where_the_rows_of_a_step_differ():
    plan = match(
        "match=tokens",
        "arms.xl.train.batch_size=16",
        "compensations={train.batch_size: larger steps}",
        text=TextCounts(50, 1600, 32.0),
    )
    steps = {name: recipe.train.steps for name, recipe in recipes_of(plan).items()}
    assert steps == {"learned": 20, "rope": 20, "xl": 10}


def test_an_epoch_that_ends_in_a_short_step_has_fewer_tokens_a_step():
    (recipe,) = {r for n, r in recipes_of(match("train.accumulation=2")).items() if n == "rope"}
    # 1,000 rows: 125 batches of 8, 63 steps of which the last has one batch
    assert TEXT.tokens_per_step(recipe) == pytest.approx(1000 * 32 / 63)


def test_time_gives_steps_by_the_measured_ratio():
    plan = match("match=time", times=lambda recipes: {"learned": 1.0, "rope": 1.25, "xl": 0.8})
    steps = {name: recipe.train.steps for name, recipe in recipes_of(plan).items()}
    assert steps == {"learned": 20, "rope": 16, "xl": 25}


def test_parameters_are_equal_up_to_half_a_unit_of_width():
    found = recipes_of(match("match=parameters"))
    counts = {name: count_parameters(recipe, 50) for name, recipe in found.items()}
    each = count_parameters(found["rope"], 50, 9) - count_parameters(found["rope"], 50, 8)
    for name in ("rope", "xl"):
        assert abs(counts[name] - counts["learned"]) <= each / 2


def test_what_was_changed_is_a_compensation_and_the_study_stays_as_written():
    plan = match("match=flops")
    content = plan.to_json()
    assert content["match"] == {"name": "flops"}
    assert list(plan.study.compensations) == ["train.steps"]
    assert "match: flops" in plan.study.compensations["train.steps"]
    assert plan.written.compensations == {}
    assert "train" not in plan.written.arms["xl"]
    xl = next(arm for arm in plan.arms if arm.name == "xl")
    assert xl.changes["train.steps"] == xl.recipe.train.steps


def test_a_fixed_warmup_longer_than_the_new_steps_is_an_error_and_a_fraction_scales():
    slow = {"learned": 1.0, "rope": 1.0, "xl": 4.0}
    with pytest.raises(
        RecipeError, match=r"'xl' 5 steps, fewer than its train\.warmup_steps \(6\)"
    ):
        match(
            "match=time",
            "train.warmup_fraction=null",
            "train.warmup_steps=6",
            times=lambda recipes: slow,
        )
    assert recipes_of(match("match=time", times=lambda recipes: slow))["xl"].train.steps == 5


@pytest.mark.parametrize(
    ("overrides", "words"),
    [
        (["match=flop"], "did you mean 'flops'"),
        (["match={name: parameters, multipel: 8}"], "multiple"),
        (["match=flops", "varies=[encoder, train.steps]"], r"sets train\.steps in every arm"),
        (["match=flops", "evaluations=[validation]"], "needs the evaluation 'size'"),
    ],
)
def test_a_match_that_makes_no_sense_is_refused_when_the_study_is_read(overrides, words):
    with pytest.raises(RecipeError, match=words):
        load_study("smoke", overrides)


def test_epochs_cannot_be_matched_by_steps():
    with pytest.raises(RecipeError, match=r"learned, rope, xl has train\.epochs"):
        match("match=flops", "train.epochs=1", "train.steps=null")
