"""A study with a probe: what it fills in, what wins over it, and the way from plan to report."""

import json

import pytest

from posattn.comparison.plan import make_plan
from posattn.comparison.probes.outcomes import prediction_outcomes
from posattn.comparison.report import write_report
from posattn.comparison.results import collect
from posattn.comparison.run import run_study
from posattn.comparison.study import load_study
from posattn.errors import RecipeError

STUDY = """
base: none
shared:
  encoder: {hidden_size: 16, num_layers: 1, num_heads: 2, intermediate_size: 16}
  train: {steps: 3, threads: 1, learning_rate: 0.004}
  data.corpus: {name: symbols, num_symbols: 6, tokens: 4000}
varies: [encoder.mechanism]
arms:
  none: {}
  rope: {encoder.mechanism: rope}
baseline: none
seeds: [0]
probe: {name: offset, offset: 2, length: 8}
"""


@pytest.fixture
def study_file(tmp_path):
    path = tmp_path / "mine.yaml"
    path.write_text(STUDY)
    return path


def test_a_probe_brings_objective_data_and_scores_and_what_is_given_wins(study_file):
    study = load_study(study_file, ["train.batch_size=4"])
    assert study.primary == "validation_accuracy"
    assert [item.name for item in study.evaluations] == ["validation", "length", "size"]
    assert "fixed distance" in study.question
    recipe = make_plan(study).arms[1].recipe
    assert recipe.objective.offset == 2
    assert (recipe.data.max_length, recipe.data.cls) == (8, False)
    assert recipe.data.corpus.num_symbols == 6
    assert (recipe.train.steps, recipe.train.batch_size) == (3, 4)
    assert recipe.train.learning_rate == 0.004
    assert recipe.train.weight_decay == 0.01


def test_the_plan_holds_predictions_before_the_first_step(study_file):
    plan = make_plan(load_study(study_file)).to_json()
    assert plan["probe"]["name"] == "offset"
    by_arm = {arm["name"]: arm["predictions"] for arm in plan["arms"]}
    assert [p["at_most"] is None for p in by_arm["none"]] == [False]
    assert [p["score"] for p in by_arm["rope"]] == ["validation_accuracy", "accuracy_at_4x"]
    study_without = load_study(
        study_file, ["probe=null", "evaluations=[validation]", "primary=validation_loss"]
    )
    assert "probe" not in make_plan(study_without).to_json()


def test_an_unknown_probe_is_refused_with_its_line(study_file):
    study_file.write_text(STUDY.replace("name: offset,", "name: ofset,"))
    with pytest.raises(RecipeError, match=r"mine.yaml:13.*did you mean 'offset'"):
        load_study(study_file)


@pytest.fixture(scope="module")
def probed(text_cache, tmp_path_factory):
    folder = tmp_path_factory.mktemp("probed")
    path = folder / "mine.yaml"
    path.write_text(STUDY)
    run_study(load_study(path), folder / "out", jobs=1)
    return folder / "out"


def test_results_say_what_held_and_what_did_not(probed):
    results = collect(probed)
    stored = json.loads((probed / "results.json").read_text())
    assert stored["probe"]["name"] == results.probe.name == "offset"
    outcomes = {(o.arm, o.score): o for o in results.predictions}
    blind = outcomes["none", "validation_accuracy"]
    assert (blind.verdict, blind.in_range, blind.n) == ("held", 1, 1)
    assert blind.values[0] == results.arm("none").scores["validation_accuracy"].values[0]
    untrained = outcomes["rope", "accuracy_at_4x"]
    assert (untrained.verdict, untrained.in_range) == ("broken", 0)
    evaluations = json.loads((probed / "runs/rope/seed-0/evaluations.json").read_text())
    assert untrained.values[0] == evaluations["length"]["accuracy"][2]
    shares = {share.arm: share for share in results.probe.arms}
    assert (shares["rope"].solved, shares["rope"].n, shares["rope"].low) == (0, 1, 0.0)


def test_the_report_shows_what_broke_as_plainly_as_what_held(probed):
    text = write_report(probed).markdown.read_text()
    assert "What the maths predicts" in text
    assert "1 held in every seed, 0 in some seeds only, 2 in none" in text
    assert "DID NOT HOLD" in text
    assert "Share of runs that solved it" in text


def test_a_run_without_a_score_is_not_held_against_the_prediction(probed):
    from posattn.comparison.study_files import read_study

    files = read_study(probed)
    results = collect(probed)
    lost = [run.model_copy(update={"state": "failed", "scores": {}}) for run in results.runs]
    outcomes = prediction_outcomes(files, lost, 8)
    assert {outcome.verdict for outcome in outcomes} == {"not tested"}
    assert {outcome.n for outcome in outcomes} == {0}
