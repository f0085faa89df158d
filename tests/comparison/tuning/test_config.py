"""The `tuning` section: what is refused before anything is trained, and where a grid ends."""

import pytest

from posattn.comparison.study import load_study
from posattn.comparison.tuning.config import TuningConfig, edge
from posattn.errors import RecipeError

RATES = "grid: {train.learning_rate: [1.0e-3, 3.0e-3]}"


def load(text, *overrides):
    return load_study("smoke", [f"tuning={{{text}}}", *overrides])


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (
            f"{RATES}, seeds: [1, 100]",
            r"tuning seeds \(1, 100\) and reporting seeds \(0, 1\) share 1",
        ),
        (f"{RATES}, seeds: [100], select_by: f2", r"tuning\.select_by: unknown metric 'f2'"),
        (f"{RATES}, seeds: [100, 100]", "more than once: 100"),
        ("grid: {train.steps: [10, 20]}, seeds: [100]", r"train\.steps is a budget or a seed"),
        ("grid: {encoder.mechanism: [rope]}, seeds: [100]", "this study also lets it differ"),
        ("grid: {learning_rate: [1, 2]}, seeds: [100]", "no dotted path into a recipe"),
        ("grid: {train.learning_rate: []}, seeds: [100]", r"no value for train\.learning_rate"),
        ("grid: {train.eps: [1.0e-8, 1.0e-8]}, seeds: [100]", "tries train.eps = 1e-08 more than"),
        ("grid: {}, seeds: [100]", "at least 1 entry"),
    ],
)
def test_an_unfair_tuning_is_refused_when_the_study_is_read(text, words):
    with pytest.raises(RecipeError, match=words):
        load(text)


def test_an_arm_that_sets_what_is_tuned_is_refused():
    setting = ["arms.rope.train.learning_rate=0.1", "declared={train.eps: x}"]
    with pytest.raises(RecipeError, match="rope sets it; leave it out there"):
        load(f"{RATES}, seeds: [100]", *setting)


def test_all_combinations_are_tried():
    tuning = TuningConfig.model_validate(
        {
            "grid": {"train.learning_rate": [0.1, 0.2], "train.weight_decay": [0.0, 1.0]},
            "seeds": [9],
        }
    )
    assert [tuple(point.values()) for point in tuning.points()] == [
        (0.1, 0.0),
        (0.1, 1.0),
        (0.2, 0.0),
        (0.2, 1.0),
    ]


@pytest.mark.parametrize(
    ("values", "chosen", "wanted"),
    [
        ((1e-4, 1e-3, 1e-2), 1e-3, None),
        ((1e-2, 1e-4, 1e-3), 1e-2, "highest"),
        ((1e-4, 1e-3), 1e-4, "lowest"),
        ((0.0, 0.1, 0.2), 0.0, None),
        ((0.1,), 0.1, None),
        (("linear", "cosine"), "linear", None),
        ((True, False), True, None),
    ],
)
def test_the_ends_of_a_grid_are_its_edges_but_for_zero_and_words(values, chosen, wanted):
    assert edge(values, chosen) == wanted
