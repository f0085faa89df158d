import pytest

from posattn.errors import CheckpointError
from posattn.training.same_recipe import check_same_recipe, recipe_changes

OLD = (
    "name: a\nencoder: {mechanism: [{name: rope}], hidden_size: 8}\ntrain: {seed: 0, threads: 1}\n"
)


def test_equal_settings_written_differently_are_the_same_recipe() -> None:
    new = "train:\n  threads: 1\n  seed: 0\nname: a\nencoder:\n  hidden_size: 8\n  mechanism:\n"
    assert recipe_changes(OLD, new + "  - name: rope\n") == {}


def test_decisive_differences_are_refused_with_both_values() -> None:
    new = OLD.replace("hidden_size: 8", "hidden_size: 16").replace("seed: 0", "seed: 1")
    with pytest.raises(CheckpointError) as caught:
        check_same_recipe(OLD, new, "runs/a")
    message = str(caught.value)
    assert "encoder.hidden_size: 8 there, 16 now" in message
    assert "train.seed: 0 there, 1 now" in message
    assert "train.checkpoint_every" in message, "what may change is listed"


def test_a_key_that_one_recipe_lacks_is_a_difference_even_if_null() -> None:
    assert recipe_changes("a: 1\n", "a: 1\nb: null\n") == {"b": (None, None)}


def test_harmless_differences_pass_and_threads_leave_a_note() -> None:
    assert check_same_recipe(OLD, OLD.replace("name: a", "name: b"), "runs/a") == []
    notes = check_same_recipe(OLD, OLD.replace("threads: 1", "threads: 2"), "runs/a")
    assert notes == [
        "train.threads was 1 and is 2 now: sums may round differently than in a run without a break"
    ]
