"""results.json from study folders: whole, partly done, broken, and with hostile names."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from posattn.comparison.answer import alone_only
from posattn.comparison.results import collect
from posattn.comparison.results_schema import Results
from posattn.errors import DataError, RecipeError, UnknownName
from tests.comparison.study_folders import EIGHT_ARMS, FakeArm, mechanism, write_json, write_study


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    return collect(write_study(tmp_path_factory.mktemp("study")))


def refuse(constant):
    raise AssertionError(f"{constant} is no JSON")


def contrast(results, name):
    return next(c for c in results.family("baseline") if c.first == name)


def test_the_json_is_strict_and_comes_back_as_the_same_results(results):
    text = results.to_json()
    content = json.loads(text, parse_constant=refuse)
    assert content["schema"] == "posattn-results/1"
    assert Results.model_validate(content) == results


def test_every_arm_and_every_run_is_there(results):
    assert [arm.name for arm in results.arms] == [arm.name for arm in EIGHT_ARMS]
    assert len(results.runs) == 24
    assert results.study.runs_finished == 23
    assert results.study.complete, "a diverged run has ended"


def test_a_diverged_run_stays_counted_with_null_and_its_reason(results):
    (run,) = [run for run in results.runs if run.state == "diverged"]
    score = run.scores["validation_loss"]
    assert (run.arm, run.seed, score.value) == ("none", 2, None)
    assert "not finite at step 301" in score.reason
    arm = results.arm("none")
    assert (arm.runs_finished, arm.runs_planned) == (2, 3)
    assert arm.scores["validation_loss"].summary.n == 2
    assert contrast(results, "none").difference.n == 2


def test_the_spread_is_the_sample_standard_deviation_in_every_place(tmp_path):
    out = write_study(tmp_path, EIGHT_ARMS[:2], diverged=frozenset())
    for seed, loss in enumerate((0.80, 0.82, 0.90)):
        path = out / f"runs/learned/seed-{seed}/evaluations.json"
        content = json.loads(path.read_text())
        content["validation"]["loss"] = loss
        content["length"]["loss"][0] = loss
        content["position"]["loss"][0] = loss
        write_json(path, content)
    arm = collect(out).arm("learned")
    for summary in (
        arm.scores["validation_loss"].summary,
        arm.length[0].summary,
        arm.position[0].summary,
    ):
        assert summary.sd == pytest.approx(0.0529150, abs=1e-7)


def test_a_refused_length_is_null_with_its_reason(results):
    point = results.arm("learned").length[-1]
    assert (point.length, point.multiple, point.summary.mean) == (512, 8.0, None)
    assert point.refused == "a table of 256 positions cannot take 512 tokens"
    assert all(p.refused is None for p in results.arm("rope").length)


def test_speed_is_summed_up_by_quartiles_and_compared_within_rounds(results):
    speed = {s.stage: s for s in results.arm("transformer_xl").speed}
    step = speed["training_step"]
    assert step.seconds.n == 8
    assert step.seconds.lower <= step.seconds.median <= step.seconds.upper
    assert step.ratio.median == pytest.approx(1.25, abs=0.03)
    assert results.baseline.speed[0].ratio.median == 1.0


def test_the_answer_names_differences_ties_failures_and_how_far_to_trust_them(results):
    by_heading = {statement.heading: statement for statement in results.answer}
    assert "6 of 7 arms differ from the baseline learned" in by_heading["Answer"].text
    assert any(item.startswith("rope: ") for item in by_heading["Better than learned"].items)
    assert "sinusoidal" in by_heading["Cannot be told apart from learned"].items[0]
    assert "none, seed 2 diverged" in by_heading["1 of 24 runs did not finish"].items[0]
    assert "cannot go below p = 0.25" in by_heading["How far to trust this"].text
    assert "early training" in by_heading["Scale"].text


def test_verdicts_agree_with_corrected_intervals(results):
    for found in results.family("baseline"):
        low, high = found.judgement.corrected_low, found.judgement.corrected_high
        assert (low <= 0 <= high) == (found.judgement.verdict == "indistinguishable")


def test_samples_are_compared_pair_by_pair_as_a_secondary_view(results):
    rope = contrast(results, "rope")
    assert rope.sample_interval.samples == 120
    assert rope.sample_interval.low < rope.difference.mean < rope.sample_interval.high
    assert [test.seed for test in rope.sample_tests] == [0, 1, 2]
    assert [test.seed for test in contrast(results, "none").sample_tests] == [0, 1]


def test_the_bootstraps_stand_beside_the_t_interval_and_say_that_seeds_are_few(results):
    rope = contrast(results, "rope")
    assert (rope.seed_interval.seeds, rope.seed_interval.method) == (3, "BCa")
    assert rope.seed_interval.low <= rope.difference.mean <= rope.seed_interval.high
    assert "fewer than 5" in rope.seed_interval.reason
    assert (rope.multi_interval.seeds, rope.multi_interval.samples) == (3, 120)
    narrow = rope.sample_interval
    assert rope.multi_interval.high - rope.multi_interval.low > narrow.high - narrow.low
    assert contrast(results, "none").multi_interval.seeds == 2
    assert all(c.seed_interval is None for c in results.family("pairs"))


def test_five_seeds_are_not_called_few(tmp_path):
    results = collect(write_study(tmp_path, EIGHT_ARMS[:2], tuple(range(5)), diverged=frozenset()))
    assert contrast(results, "none").seed_interval.reason is None
    assert contrast(results, "none").multi_interval.reason is None


NAMED_AND_OTHERS = ("learned", "rope", "sinusoidal", "disentangled", "disentangled_emd")


def with_plan(out, **changes):
    plan = json.loads((out / "plan.json").read_text())
    write_json(out / "plan.json", plan | changes)
    return out


def test_contrasts_named_beforehand_open_the_answer(tmp_path):
    named = [["disentangled_emd", "disentangled"], ["rope", "learned"]]
    arms = tuple(arm for arm in EIGHT_ARMS if arm.name in NAMED_AND_OTHERS)
    out = with_plan(write_study(tmp_path, arms, speed=False), primary_contrasts=named)
    results = collect(out)
    assert [(c.first, c.second) for c in results.named] == [tuple(pair) for pair in named]
    assert results.named[0].multi_interval is not None
    lead, beforehand, beside = results.answer[:3]
    assert lead.text.startswith("Of the 2 contrasts named beforehand, by validation loss")
    assert "rope is better than learned" in lead.text
    assert beforehand.heading == "Named beforehand"
    assert "judged because a contrast named beforehand holds" in beforehand.text
    assert beside.text.count("2 of 3 other arms differ") == 1
    items = [item for statement in results.answer[2:] for item in statement.items]
    assert not any(item.startswith("rope: ") for item in items), "told once, as named"


def test_a_named_contrast_that_does_not_hold_leaves_the_others_unjudged(tmp_path):
    arms = EIGHT_ARMS[:4]
    out = with_plan(
        write_study(tmp_path, arms, speed=False), primary_contrasts=[["sinusoidal", "learned"]]
    )
    results = collect(out)
    assert "sinusoidal cannot be told apart from learned" in results.answer[0].text
    assert "without correction" in results.answer[1].text
    assert results.answer[2].text.endswith(
        "no other arm can be told apart from the baseline learned."
    )
    ties = next(s for s in results.answer if s.heading.startswith("Cannot be told apart"))
    assert "not judged because no contrast named beforehand holds" in ties.text


def test_a_plan_that_names_an_unknown_arm_is_refused(tmp_path):
    out = with_plan(write_study(tmp_path, EIGHT_ARMS[:2]), primary_contrasts=[["learned", "rop"]])
    with pytest.raises(DataError, match="primary_contrasts names 'rop', no arm"):
        collect(out)


def test_an_arm_called_banana_keeps_its_name(tmp_path):
    arms = (EIGHT_ARMS[0], FakeArm("BaNaNa", 1.5, changes=mechanism("rope")))
    results = collect(write_study(tmp_path, arms, diverged=frozenset({("BaNaNa", 0)})))
    content = json.loads(results.to_json(), parse_constant=refuse)
    assert content["arms"][1]["name"] == "BaNaNa"
    assert content["runs"][3]["scores"]["validation_loss"]["value"] is None


def test_a_study_that_has_just_begun_has_results_without_verdicts(tmp_path):
    missing = frozenset((arm.name, seed) for arm in EIGHT_ARMS for seed in (0, 1, 2))
    results = collect(write_study(tmp_path, unstarted=missing, speed=False))
    assert not results.study.complete
    assert {run.state for run in results.runs} == {"not started"}
    assert results.answer[0].heading == "No verdict"
    assert results.groups == []
    assert results.arm("rope").scores["validation_loss"].reason == "no finished run has this score"


def test_a_finished_run_without_evaluations_has_no_score_and_is_noted(tmp_path):
    out = write_study(tmp_path, EIGHT_ARMS[:2])
    (out / "runs/learned/seed-0/evaluations.json").unlink()
    results = collect(out)
    assert results.runs[0].scores["validation_loss"].reason == (
        "the evaluation 'validation' has not run"
    )
    assert "runs/learned/seed-0 is finished and not yet evaluated" in results.notes


def test_one_seed_is_reported_as_no_interval_and_no_test(tmp_path):
    results = collect(write_study(tmp_path, seeds=(0,), diverged=frozenset()))
    trust = next(s for s in results.answer if s.heading == "How far to trust this")
    assert trust.text.startswith("One seed: no interval and no test")
    assert {c.judgement.verdict for c in results.family("baseline")} == {"not tested"}


def test_one_arm_is_reported_as_nothing_to_compare(tmp_path):
    results = collect(write_study(tmp_path, EIGHT_ARMS[:1]))
    assert results.answer[0].text.endswith("There is nothing to compare.")
    assert results.contrasts == []


def test_sections_of_further_evaluations_are_kept(tmp_path):
    out = write_study(tmp_path, EIGHT_ARMS[:1])
    path = out / "runs/learned/seed-0/evaluations.json"
    write_json(path, json.loads(path.read_text()) | {"order": {"accuracy": 0.75}})
    assert collect(out).runs[0].other == {"order": {"accuracy": 0.75}}


def test_what_differs_between_runs_is_told_from_what_they_share(results):
    assert results.environment["common"]["versions.torch"] == "2.13.0"
    assert set(results.environment["differs"]) == {"seeds.train", "seeds.data"}
    assert results.data["common"]["licence"] == "CC-BY 2.5"


def test_a_folder_that_is_no_study_is_refused_with_the_way_out(tmp_path):
    with pytest.raises(RecipeError, match=r"has no plan\.json; give the --out folder"):
        collect(tmp_path)
    with pytest.raises(RecipeError, match="there is no folder"):
        collect(tmp_path / "nothing")


def test_a_nan_in_a_stored_file_is_refused_with_the_file_name(tmp_path):
    out = write_study(tmp_path, EIGHT_ARMS[:1])
    path = out / "runs/learned/seed-0/evaluations.json"
    path.write_text('{"validation": {"loss": NaN}}')
    with pytest.raises(DataError, match=r"evaluations\.json cannot be read: NaN is no JSON"):
        collect(out)


def test_a_wrong_type_in_a_stored_file_is_named_with_its_place(tmp_path):
    out = write_study(tmp_path, EIGHT_ARMS[:1])
    plan = json.loads((out / "plan.json").read_text())
    write_json(out / "plan.json", plan | {"seeds": "all"})
    with pytest.raises(DataError, match=r"plan\.json cannot be read: seeds: .*found 'all'"):
        collect(out)


def test_an_unknown_baseline_names_the_arms(tmp_path):
    out = write_study(tmp_path, EIGHT_ARMS[:2])
    plan = json.loads((out / "plan.json").read_text())
    write_json(out / "plan.json", plan | {"baseline": "ropee"})
    with pytest.raises(DataError, match=r"'ropee' is no arm \(arms: learned, none\)"):
        collect(out)


def test_an_unknown_primary_score_names_the_known_ones(tmp_path):
    out = write_study(tmp_path, EIGHT_ARMS[:1])
    plan = json.loads((out / "plan.json").read_text())
    write_json(out / "plan.json", plan | {"primary": "validation_los"})
    with pytest.raises(UnknownName, match="did you mean 'validation_loss'"):
        collect(out)


def test_the_line_that_a_killed_run_was_writing_is_left_out(tmp_path):
    out = write_study(tmp_path, EIGHT_ARMS[:1])
    path = out / "runs/learned/seed-0/metrics.jsonl"
    whole = collect(out).runs[0].curve
    path.write_text(path.read_text() + '{"kind": "evaluation", "step": 700, "tok')
    assert collect(out).runs[0].curve == whole


def test_a_broken_line_inside_the_metrics_is_named_by_number(tmp_path):
    out = write_study(tmp_path, EIGHT_ARMS[:1])
    path = out / "runs/learned/seed-0/metrics.jsonl"
    lines = path.read_text().splitlines()
    lines[1] = '{"kind": "evaluation", '
    path.write_text("\n".join(lines) + "\n")
    with pytest.raises(DataError, match=r"metrics\.jsonl, line 2"):
        collect(out)


def test_steps_logged_again_after_a_resume_count_once(tmp_path):
    out = write_study(tmp_path, EIGHT_ARMS[:1])
    path = out / "runs/learned/seed-0/metrics.jsonl"
    again = {"kind": "evaluation", "step": 600, "tokens": 1, "loss": 9.0}
    path.write_text(path.read_text() + json.dumps(again) + "\n")
    curve = collect(out).runs[0].curve
    assert [p.step for p in curve] == [100, 200, 300, 400, 500, 600]
    assert curve[-1].loss == 9.0


def test_a_broken_examples_file_is_named(tmp_path):
    out = write_study(tmp_path, EIGHT_ARMS[:1])
    (out / "runs/learned/seed-0/examples.npz").write_bytes(b"no zip")
    with pytest.raises(DataError, match=r"examples\.npz cannot be read"):
        collect(out)


def test_the_documented_keys_are_those_of_the_schema(results):
    page = (Path(__file__).parents[2] / "docs" / "results_schema.md").read_text(encoding="utf-8")
    content = json.loads(results.to_json())
    parts = [content, content["study"], content["arms"][0], content["runs"][0]]
    judged = content["contrasts"][0]
    parts += [judged, judged["difference"], judged["judgement"], content["metrics"][0]]
    missing = {key for part in parts for key in part if f"`{key}`" not in page}
    assert missing == set()


def test_no_difference_is_said_as_such(tmp_path):
    arms = (FakeArm("base", 1.5), FakeArm("other", 1.5))
    results = collect(write_study(tmp_path, arms, diverged=frozenset(), noise=0.05))
    assert results.answer[0].text.endswith("no arm can be told apart from the baseline base.")


def test_a_tie_whose_own_interval_excludes_zero_is_explained(results):
    def with_p(contrast, p):
        difference = replace(contrast.difference, p_t=p)
        return contrast.model_copy(update={"difference": difference})

    ties = results.family("baseline")[:2]
    others = [with_p(contrast, 0.5) for contrast in ties]
    assert alone_only(others, 7) == ""
    assert alone_only([with_p(ties[0], 0.02), others[1]], 7) == (
        f" The interval of {ties[0].first} excludes zero taken alone, but not after correction for "
        "7 comparisons."
    )
