"""Twenty standards: claimed where the files show it, and not where they do not."""

import json

import pytest

from posattn.comparison.budgets.schema import ArmBudget, BudgetInfo
from posattn.comparison.inside_schema import CheckSummary, Inside
from posattn.comparison.report.compute import compute_table
from posattn.comparison.report.standards import judging, running, tuned
from posattn.comparison.report.standards.section import STANDARDS, standard_sections
from posattn.comparison.results import collect
from posattn.comparison.results_schema import ControlResult
from posattn.comparison.self_tests import RULE
from posattn.comparison.tuning.schema import ArmTuning, Trial, TrialRun, TuningInfo
from posattn.figures.blocks import Section, Table
from tests.comparison.study_folders import EIGHT_ARMS, write_study


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    """The results of three arms with three seeds, of which one diverged."""
    return collect(write_study(tmp_path_factory.mktemp("study"), EIGHT_ARMS[:3]))


@pytest.fixture(scope="module")
def unstarted(tmp_path_factory):
    missing = frozenset((arm.name, seed) for arm in EIGHT_ARMS[:2] for seed in (0, 1))
    out = tmp_path_factory.mktemp("unstarted")
    return collect(write_study(out, EIGHT_ARMS[:2], (0, 1), unstarted=missing, speed=False))


def with_control(results, **changes):
    rule = ControlResult(
        **{"rule": "all arms see the same batches and masks", "held": True, "detail": "d"}
        | {"expected": False}
        | changes
    )
    return results.model_copy(update={"control": [rule]})


def test_there_are_twenty_and_each_has_a_row_with_a_link(found):
    (section,) = standard_sections(found, [Section("control", "Control", [])])
    table = section.blocks[1]
    assert isinstance(table, Table)
    assert len(STANDARDS) == len(table.rows) == 20
    assert table.links == {(row, 4): "#control" for row in (0, 1, 2, 15, 18)}
    assert table.row_ids[6] == "standard-7"
    assert {row[2] for row in table.rows} <= {"yes", "partly", "no", "not applicable"}


def test_nothing_is_claimed_of_a_study_that_has_not_started(unstarted):
    claimed = {title for title, judge in STANDARDS if judge(unstarted).status == "yes"}
    allowed = {
        "Arms differ in the declared factors only",
        "Batches and masks equal, by hash",
        "Failed and killed runs stay in the tables",
    }
    assert claimed <= allowed, "these two stand in this plan.json; the third is about the tables"


@pytest.mark.parametrize(
    ("changes", "status", "words"),
    [
        ({}, "yes", "d."),
        ({"held": False, "detail": "rope, seed 1"}, "no", "rope, seed 1"),
        ({"held": False, "expected": True, "detail": "why"}, "partly", "why"),
        ({"held": None}, "no", "Not checked"),
        ({"rule": "something else"}, "no", "does not list"),
    ],
)
def test_control_is_claimed_by_its_rules_only(found, changes, status, words):
    standing = running.same_batches(with_control(found, **changes))
    assert standing.status == status
    assert words in standing.how


def test_failures_are_counted(found):
    standing = running.failures(found)
    assert "8 of 9 planned runs finished (1 diverged)" in standing.how


@pytest.mark.parametrize(("number", "status"), [(3, "partly"), (6, "yes"), (7, "yes")])
def test_a_claim_needs_six_seeds(found, number, status):
    study = found.study.model_copy(update={"seeds": list(range(number))})
    assert tuned.seeds(found.model_copy(update={"study": study})).status == status


def test_missing_evaluations_are_named_as_missing(found, unstarted):
    assert judging.lengths_and_positions(found).status == "yes"
    no_position = [arm.model_copy(update={"position": []}) for arm in found.arms]
    half = judging.lengths_and_positions(found.model_copy(update={"arms": no_position}))
    assert half.status == "partly"
    assert "Not evaluated by position" in half.how
    assert running.sizes(unstarted).status == "no"
    assert running.samples(unstarted).status == "no"
    assert judging.diagnostics(found).status == "no"
    assert judging.curves(found.model_copy(update={"speed": None})).status == "partly"


def test_broken_checks_inside_are_counted(found):
    check = CheckSummary(
        evaluation="shift",
        name="n",
        amount=1,
        same=True,
        because="b",
        relative=0.5,
        tolerance=0.1,
        judged=2,
        held=1,
    )
    arms = [arm.model_copy(update={"inside": Inside(checks=[check])}) for arm in found.arms]
    standing = judging.diagnostics(found.model_copy(update={"arms": arms}))
    assert standing.status == "yes"
    assert "3 of 3 checks broken" in standing.how


def test_a_matched_budget_is_named_with_what_is_left_over(found):
    arms = [ArmBudget(arm="learned"), ArmBudget(arm="none", over_baseline={"tokens": -0.014})]
    budget = BudgetInfo(match="time", options={}, held="time", sets="train.steps", arms=arms)
    standing = tuned.budget(found.model_copy(update={"budget": budget}))
    assert standing.section == "budget"
    assert (
        "Matched by time; most left over against the baseline: tokens \u22121.4 %" in standing.how
    )
    assert tuned.budget(found.model_copy(update={"budget": None})).status == "partly"


def tuning_of(edges):
    run = TrialRun(
        seed=100, state="finished", score=2.0, reason=None, seconds=7.0, tokens=9, folder="f"
    )
    lost = run.model_copy(update={"state": "killed", "score": None, "reason": "r", "seconds": 4.0})
    values = {"train.learning_rate": 1e-3}
    good = Trial(number=0, values=values, state="finished", mean=2.0, runs=[run])
    bad = Trial(number=1, values=values, state="failed", mean=None, runs=[lost])
    arm = ArmTuning(arm="none", trials=[good, bad], chosen=0, values=values, edges=edges)
    return TuningInfo(
        grid={"train.learning_rate": [1e-3, 2e-3]},
        seeds=[100],
        steps=None,
        select_by="validation_loss",
        better="lower",
        trials_per_arm=2,
        arms=[arm],
        seconds=11.0,
    )


def test_tuning_counts_where_no_choice_is_at_an_edge_and_its_time_is_counted(found):
    assert tuned.tuning(found).status == "no"
    whole = found.model_copy(update={"tuning": tuning_of({})})
    standing = tuned.tuning(whole)
    assert (standing.status, standing.section) == ("yes", "tuning")
    assert "2 trials for each arm" in standing.how
    assert "1 failed one too" in standing.how
    assert "seeds of its own: 100" in tuned.seeds(whole).how
    at_edge = tuned.tuning(
        found.model_copy(update={"tuning": tuning_of({"train.learning_rate": "lowest"})})
    )
    assert at_edge.status == "partly"
    assert "not tuned: none" in at_edge.how
    row = next(row for row in compute_table(whole).rows if row[0] == "tuning trials")
    assert row[1:] == ["2", "1", "7", "4", "11"]


def test_a_number_that_an_arm_is_known_for_counts_only_when_it_is_met(found):
    assert judging.known_number(found).status == "no"
    rule = "the arm rope reproduces the validation_loss it is known for"
    assert judging.known_number(with_control(found, rule=rule)).status == "yes"
    assert judging.known_number(with_control(found, rule=rule, held=False)).status == "no"


def test_the_environment_is_frozen_only_as_far_as_it_is_recorded(found):
    assert running.environment(found).status == "yes"
    dirty = {"common": found.environment["common"] | {"git.dirty": True}, "differs": {}}
    assert running.environment(found.model_copy(update={"environment": dirty})).status == "partly"
    bare = {"common": {"threads": 1}, "differs": {}}
    standing = running.environment(found.model_copy(update={"environment": bare}))
    assert "Not recorded, or not equal: library versions" in standing.how


def test_computing_time_counts_runs_that_failed(found):
    table = compute_table(found)
    rows = {row[0]: row[1:] for row in table.rows}
    seconds = {run.folder: run.seconds for run in found.runs}
    assert rows["none"] == ["3", "2", "190", "95", "285"]
    assert rows["all runs"][-1] == f"{sum(seconds.values()):,.0f}"


def test_the_section_stands_in_both_texts(tmp_path):
    from posattn.comparison.report import write_report

    paths = write_report(write_study(tmp_path, EIGHT_ARMS[:2], (0, 1)))
    for text in (paths.html.read_text(), paths.markdown.read_text()):
        assert "How this comparison was controlled" in text
        assert "Computing time of everything, failed and killed runs too" in text
    assert json.loads(paths.results.read_text())["study"]["name"] == "quick"


def test_arms_are_tested_by_themselves_where_the_plan_says_so(found):
    detail = "24 checks of shift and padding on 3 arms"
    held = with_control(found, rule=RULE, detail=detail)
    assert judging.self_test(held).status == "yes"
    assert detail in judging.self_test(held).how
    assert judging.self_test(found).status == "no", "these runs are of a time without self-tests"
