"""Tuning from trials that are made up: who is chosen, what is stored, and what stays visible."""

import json
from itertools import product

import numpy as np
import pytest

from posattn.comparison.plan import make_plan, write_plan
from posattn.comparison.report import write_report
from posattn.comparison.results import collect
from posattn.comparison.run import run_study
from posattn.comparison.settle import check_same_choices
from posattn.comparison.study import load_study
from posattn.comparison.tuning.choice import expected_best
from posattn.comparison.tuning.trials import trial_study
from posattn.comparison.tuning.tune import read_tuning, tuned
from posattn.errors import RecipeError, StudyIncomplete
from tests.comparison.study_folders import FakeArm, write_run, write_study

GRID = "grid: {train.learning_rate: [1.0e-4, 1.0e-3, 1.0e-2], train.weight_decay: [0.0, 0.1]}"
TUNING = f"tuning={{{GRID}, seeds: [100, 101]}}"
LOSSES = {
    "learned": {1: 3.0, 2: 2.9, 3: 2.5, 4: 2.5, 5: 2.7, 6: 2.8},  # a tie: the first is taken
    "rope": {1: 2.0, 2: 1.9, 3: 1.8, 4: 1.7, 5: 1.0, 6: 1.6},  # 5 diverges with one seed
}


def plan(*overrides):
    return make_plan(load_study("smoke", [TUNING, *overrides]))


def pretend(losses, diverged=frozenset()):
    """Return a stand-in for `run_study` that leaves a folder of trials with these losses."""

    def run(study, out, show):
        made = make_plan(study)
        out.mkdir()
        write_plan(made, out)
        for planned in made.runs:
            arm, number = planned.arm.split(".trial-")
            ends = (arm, int(number), planned.seed) in diverged
            fake = FakeArm(planned.arm, losses[arm][int(number)])
            write_run(
                out / planned.folder, fake, planned.seed, planned.seed % 2 / 10, diverged=ends
            )
        raise StudyIncomplete("some trials did not finish")

    return run


@pytest.fixture(scope="module")
def settled(tmp_path_factory):
    """A tuned study, and its folder with trials and the runs of a report."""
    out = tmp_path_factory.mktemp("study")
    study = tuned(plan(), out, None, pretend(LOSSES, frozenset({("rope", 5, 101)})))
    write_study(out, (FakeArm("learned", 2.4), FakeArm("rope", 1.6)), diverged=frozenset())
    return study, out


def test_the_best_mean_is_chosen_and_a_diverged_trial_never_wins(settled):
    study, out = settled
    recipes = {arm.name: arm.recipe.train for arm in make_plan(study).arms}
    assert recipes["learned"].learning_rate == 1e-3
    assert recipes["learned"].weight_decay == 0.0
    assert recipes["rope"].learning_rate == 1e-2
    assert recipes["rope"].weight_decay == 0.1
    info = read_tuning(out / "tuning.json")
    failed = info.arm("rope").failed
    assert [trial.number for trial in failed] == [5]
    assert failed[0].mean is None
    assert [run.state for run in failed[0].runs] == ["finished", "diverged"]
    assert "not finite" in failed[0].runs[1].reason
    assert info.arm("rope").edges == {
        "train.learning_rate": "highest",
        "train.weight_decay": "highest",
    }
    assert info.arm("learned").tuned
    assert info.arm("learned").trials[2].mean == pytest.approx(2.55)


def test_chosen_values_are_compensations_with_the_way_they_were_chosen(settled):
    reason = settled[0].compensations["train.learning_rate"]
    assert "the same 6 trials for every arm" in reason
    assert "over the seeds 100, 101" in reason
    assert settled[0].seeds == (0, 1)


def test_a_stored_choice_is_read_and_never_made_again(settled):
    def never(*_):
        raise AssertionError("trials were run again")

    study, out = settled
    assert tuned(plan(), out, None, never).arms == study.arms
    with pytest.raises(RecipeError, match="was chosen from other trials"):
        tuned(plan("train.steps=30"), out, None, never)


def test_runs_of_a_study_that_was_not_tuned_are_refused_before_a_trial(settled, tmp_path):
    out = write_study(tmp_path, (FakeArm("learned", 2.4),), seeds=(0,))
    with pytest.raises(RecipeError, match=r"tuning\.grid.*the folder has nothing"):
        check_same_choices(plan().study, out)


def test_without_any_finished_trial_the_arm_and_its_trials_are_named(tmp_path):
    rates = "tuning={grid: {train.learning_rate: [0.01, 0.1], train.weight_decay: [0.1]}, seeds: [100, 101]}"
    diverged = frozenset(product(["rope"], range(1, 7), [100, 101]))
    with pytest.raises(StudyIncomplete) as error:
        tuned(plan(rates), tmp_path, None, pretend(LOSSES, diverged))
    assert "no trial of the arm 'rope' finished" in str(error.value)
    assert "0.1, train.weight_decay 0.1, seed 101: diverged" in str(error.value)
    assert not (tmp_path / "tuning.json").exists()


def test_trials_have_their_own_seeds_only_the_validation_score_and_steps_in_proportion():
    made = plan("train.steps=40", f"tuning={{{GRID}, seeds: [100], steps: 10}}")
    longer = {arm.name: arm.recipe for arm in made.arms}
    train = longer["rope"].train.model_copy(update={"steps": 80})
    longer["rope"] = longer["rope"].model_copy(update={"train": train})
    trials = trial_study(made.study, made.study.tuning, longer)
    assert trials.seeds == (100,)
    assert [evaluation.name for evaluation in trials.evaluations] == ["validation"]
    assert trials.evaluations[0].tokens == 4096
    steps = {name: own["train"]["steps"] for name, own in trials.arms.items()}
    assert steps["learned.trial-1"] == 10
    assert steps["rope.trial-6"] == 20


def test_report_answer_and_limits_tell_of_edges_failures_and_cost(settled):
    paths = write_report(settled[1])
    page = paths.markdown.read_text()
    assert "rope: train.learning_rate 0.01 is the highest tried" in page
    assert "rope: 1" in page
    assert "not tuned: train.learning_rate at its highest" in page
    assert "24 trial runs trained for 2,280 seconds" in page
    assert "Tuning: train.learning_rate and train.weight_decay chosen for each arm" in page
    assert "tuned for none of them" not in page
    rows = (paths.figures / "tuning_train_learning_rate.csv").read_text().splitlines()
    assert len(rows) == 1 + 12
    assert "rope,5,0.01,failed,,,,1.0," in rows
    assert any(row.startswith("rope,6,0.01,finished,1.65") and "yes,highest" in row for row in rows)
    assert "diverged or failed" in (paths.figures / "tuning_train_learning_rate.svg").read_text()


def test_the_expected_best_is_that_of_all_draws_with_replacement():
    values = [2.0, 1.0, 4.0, 3.5]
    for better, pick in (("lower", min), ("higher", max)):
        for draws, found in enumerate(expected_best(values, better), start=1):
            every = [pick(drawn) for drawn in product(values, repeat=draws)]
            assert found == pytest.approx(np.mean(every))


def test_a_damaged_file_says_what_to_do(settled, tmp_path):
    (tmp_path / "tuning.json").write_text("[]")
    with pytest.raises(RecipeError, match="delete it to have the values chosen again"):
        read_tuning(tmp_path / "tuning.json")


@pytest.mark.usefixtures("text_cache")
def test_a_tiny_study_is_tuned_matched_and_run(tmp_path):
    overrides = [
        "tuning={grid: {train.learning_rate: [1.0e-3, 1.0e+30]}, seeds: [100]}",
        "match=flops",
        "arms.rope.encoder.mechanism={name: transformer_xl}",
        "train={steps: 6, clip_norm: null, evaluate_every: 0, log_every: 2}",
        "evaluations=[{name: validation, tokens: 512}, size]",
        "seeds=[0]",
    ]
    shown = []
    study = load_study("smoke", overrides)
    run_study(study, tmp_path / "study", jobs=1, progress=shown.append)
    out = tmp_path / "study"
    results = collect(out)
    assert [arm.values for arm in results.tuning.arms] == [{"train.learning_rate": 1e-3}] * 2
    assert [len(arm.failed) for arm in results.tuning.arms] == [1, 1]
    assert {run.seed for run in results.runs} == {0}
    assert results.budget.arm("rope").steps == 5
    assert abs(results.budget.arm("rope").over_baseline["training_flops"]) < 0.1
    assert not any(rule.broken for rule in results.control)
    assert "tuning" in {progress.stage for progress in shown}
    content = json.loads((out / "plan.json").read_text())
    assert sorted(content["compensations"]) == ["train.learning_rate", "train.steps"]
    assert load_study(out / "study.yaml").tuning == study.tuning
