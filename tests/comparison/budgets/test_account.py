"""What each arm got, from the files of a study, in results.json, report and limits."""

import json

import pytest

from posattn.comparison.report import write_report
from posattn.comparison.results import collect
from tests.comparison.study_folders import EIGHT_ARMS, write_json, write_study


@pytest.fixture(scope="module")
def timed(tmp_path_factory):
    """A study of three arms, matched by time."""
    out = write_study(tmp_path_factory.mktemp("study"), EIGHT_ARMS[:3])
    plan = json.loads((out / "plan.json").read_text())
    write_json(out / "plan.json", plan | {"match": {"name": "time", "rounds": 9, "warmup": 2}})
    seconds = {"learned": 0.15, "none": 0.14, "sinusoidal": 0.155}
    write_json(out / "match.json", {"seconds": seconds, "rounds": []})
    return out


def test_budgets_are_compared_with_the_baseline_seed_by_seed(timed):
    budget = collect(timed).budget
    assert (budget.match, budget.held, budget.file) == ("time", "training time", "match.json")
    none = budget.arm("none")
    assert none.steps == 600
    assert none.width == 512
    assert none.parameters == 813_000
    assert none.over_baseline["parameters"] == pytest.approx(813_000 / 845_768 - 1)
    assert none.training_flops == 3 * none.flops_per_token * 600 * 2048
    assert none.expected_seconds == pytest.approx(0.14 * 600)
    assert none.over_baseline["seconds"] == 0.0


def test_seconds_of_a_diverged_run_count_in_the_sum_only(timed):
    none = collect(timed).budget.arm("none")
    assert none.seconds == 95.0
    assert none.seconds_of_all == 3 * 95.0


def test_report_and_limits_say_which_budget_was_held(timed):
    paths = write_report(timed)
    page = paths.markdown.read_text()
    assert "Arms are matched by training time (match: time)" in page
    assert "median ratio of 9 timed rounds" in page
    assert "Budgets: arms are matched by training time. Left over" in page
    assert "seconds expected" in page


def test_a_study_by_steps_says_so_and_an_unevaluated_arm_has_nulls(tmp_path):
    out = write_study(tmp_path, EIGHT_ARMS[:2], unstarted=frozenset({("none", 0), ("none", 1)}))
    results = collect(out)
    assert results.budget.match == "steps"
    none = results.budget.arm("none")
    assert none.parameters is none.over_baseline["parameters"] is none.seconds is None
    assert any("matched by steps and tokens" in limit for limit in results.limits)
