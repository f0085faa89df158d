"""match.json: ratios within rounds, and stored times that are read and never measured again."""

import json

import pytest

from posattn.comparison.budgets import timing
from posattn.comparison.budgets.config import TimeMatch
from posattn.comparison.plan import make_plan
from posattn.comparison.progress import ProgressBoard
from posattn.comparison.study import load_study
from posattn.errors import RecipeError

ROUNDS = [
    {"arm": arm, "round": number, "stage": "training_step", "seconds": drift * seconds}
    for number, drift in enumerate((1.0, 3.0, 1.5))
    for arm, seconds in (("learned", 2.0), ("rope", 2.5))
]


@pytest.fixture
def plan():
    return make_plan(load_study("smoke"))


def times(plan, out, measure):
    recipes = {arm.name: arm.recipe for arm in plan.arms}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(timing, "_measured", measure)
        board = ProgressBoard("smoke", plan.runs, None)
        return timing.step_times(recipes, "learned", TimeMatch(), out, board)


def test_a_drift_of_the_machine_cancels_within_rounds(plan, tmp_path):
    found = times(plan, tmp_path, lambda *_: {"conditions": {}, "rounds": ROUNDS})
    assert found == {"learned": 1.0, "rope": pytest.approx(1.25)}
    content = json.loads((tmp_path / "match.json").read_text())
    assert content["rounds"] == ROUNDS
    assert content["seconds"] == {"learned": 3.0, "rope": 3.75}


def test_times_are_measured_once(plan, tmp_path):
    def never(*_):
        raise AssertionError("measured again")

    first = times(plan, tmp_path, lambda *_: {"conditions": {}, "rounds": ROUNDS})
    assert times(plan, tmp_path, never) == first


def test_times_of_other_arms_or_a_damaged_file_are_refused(plan, tmp_path):
    times(plan, tmp_path, lambda *_: {"conditions": {}, "rounds": ROUNDS})
    wider = make_plan(load_study("smoke", ["encoder.hidden_size=64"]))
    with pytest.raises(RecipeError, match="learned, rope changed"):
        times(wider, tmp_path, None)
    (tmp_path / "match.json").write_text("[]")
    with pytest.raises(RecipeError, match="is damaged"):
        times(plan, tmp_path, None)
