"""What a suite says: scores by task, predictions counted, averages or the reason for none."""

import json
from pathlib import Path
from typing import Any

import pytest

from posattn.comparison.statistics import holm, paired_difference
from posattn.comparison.suite.collect import collect_suite
from posattn.comparison.suite.report import write_suite_report
from posattn.comparison.suite.schema import SuiteResults
from posattn.errors import DataError, RecipeError
from tests.comparison.report.pages import read_page
from tests.comparison.study_folders import write_json
from tests.comparison.suite_folders import BATTERY, write_suite, write_task

PROBE = {"name": "offset", "question": "Which?", "chance": 0.125, "solved": 0.95}
RULES = {
    "none": [{"score": "validation_accuracy", "at_most": 0.175, "because": "it is blind"}],
    "rope": [{"score": "validation_accuracy", "at_least": 0.95, "because": "it reads distance"}],
    "alibi": [{"score": "validation_accuracy", "at_least": 0.95, "because": "a wrong guess"}],
    "disentangled": [],
}


def write_battery(out: Path) -> Path:
    """Write the battery with a probe and predictions in the task offset_by_symbol."""
    write_suite(out)
    arms = [
        {"name": name, "changes": {}, "recipe_digest": name, "predictions": rules}
        for name, rules in RULES.items()
    ]
    folder = out / "tasks" / "offset_by_symbol"
    write_task_again(folder, arms)
    return out


def write_task_again(folder: Path, arms: list[dict[str, Any]]) -> None:
    plan = json.loads((folder / "plan.json").read_text())
    write_json(folder / "plan.json", plan | {"arms": arms, "probe": PROBE})


@pytest.fixture(scope="module")
def out(tmp_path_factory: pytest.TempPathFactory) -> Path:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("posattn.comparison.suite.aggregate.RESAMPLES", 50)
        folder = write_battery(tmp_path_factory.mktemp("suite") / "battery")
        write_suite_report(folder)
    return folder


@pytest.fixture(scope="module")
def found(out: Path) -> SuiteResults:
    return SuiteResults.model_validate_json((out / "suite.json").read_text())


def test_every_task_keeps_its_scores_states_and_place_in_the_plan(found: SuiteResults) -> None:
    assert [task.name for task in found.tasks] == ["reverse", "offset_by_symbol", "offset"]
    task = found.task("offset_by_symbol")
    rope = next(arm for arm in task.arms if arm.name == "rope")
    assert rope.values == {0: 0.71, 1: 0.73, 2: 0.99, 3: 0.72, 4: None}
    assert rope.states == {4: "diverged"}
    assert (task.runs_finished, task.runs_planned, task.state) == (19, 20, "complete")
    assert task.reason == "rope, seed 4 diverged"


def test_differences_are_one_family_over_all_arms_and_tasks(found: SuiteResults) -> None:
    assert len(found.contrasts) == 9
    assert {contrast.judgement.family_size for contrast in found.contrasts} == {9}
    alone = []
    for contrast in found.contrasts:
        scores = [
            {s: v for s, v in enumerate(BATTERY[contrast.task][name]) if v is not None}
            for name in (contrast.first, "none")
        ]
        alone.append(paired_difference(*scores).p_t or 0.0)
    assert [c.judgement.p_holm for c in found.contrasts] == pytest.approx(holm(alone))


def test_predictions_are_counted_and_those_that_broke_are_named(found: SuiteResults) -> None:
    assert [(p.arm, p.verdict) for p in found.predictions] == [
        ("none", "held"),
        ("rope", "mixed"),
        ("alibi", "broken"),
    ]
    assert found.answer[0].text == "1 of 3 predictions held (1 mixed, 1 broken)."
    broken = next(s for s in found.answer if s.heading == "Broken predictions")
    assert broken.items == [
        "offset_by_symbol, alibi: accuracy \u2265 0.95 predicted, 0 of 5 seeds within"
    ]


def test_solved_seeds_are_counted_with_their_interval(found: SuiteResults) -> None:
    arms = {arm.name: arm.solved for arm in found.task("offset_by_symbol").arms}
    assert arms["rope"] is not None
    assert (arms["rope"].solved, arms["rope"].n, arms["rope"].runs) == (1, 4, 5)
    assert arms["disentangled"] is not None
    assert arms["disentangled"].low == pytest.approx(0.025 ** (1 / 5))
    assert found.task("reverse").probe is None


def test_accuracies_are_averaged_over_runs_of_all_tasks(found: SuiteResults) -> None:
    arms = {arm.name: arm for arm in found.aggregate.arms}
    runs = sorted(
        value for task in BATTERY.values() for value in task["alibi"] if value is not None
    )
    middle = runs[3:-3]
    assert arms["alibi"].iqm is not None
    assert arms["alibi"].iqm.value == pytest.approx(sum(middle) / len(middle))
    assert (arms["rope"].runs, arms["rope"].unfinished) == (14, 1)
    assert arms["rope"].improvement is not None
    assert arms["rope"].improvement.value == 1.0
    assert arms["none"].improvement is None
    solved = found.aggregate.thresholds.index(0.9)
    assert arms["disentangled"].profile is not None
    assert arms["disentangled"].profile[solved] == pytest.approx((1 + 1 + 4 / 5) / 3)


def test_the_page_holds_together_and_links_to_every_task(out: Path) -> None:
    page = read_page((out / "report.html").read_text(encoding="utf-8"))
    assert len(page.ids) == len(set(page.ids))
    targets = {a["href"] for tag, a in page.tags if tag == "a"}
    assert {target[1:] for target in targets if target.startswith("#")} <= set(page.ids)
    for target in targets:
        assert target.startswith("#") or (out / target.partition("#")[0]).is_file(), target
    assert {f"tasks/{name}/report.html" for name in BATTERY} <= targets
    for name in ("accuracies", "averages", "improvements", "profiles"):
        assert (out / "figures" / f"{name}.svg").is_file()
        assert (out / "figures" / f"{name}.csv").is_file()
    assert "1 of 3 predictions held" in (out / "report.md").read_text(encoding="utf-8")


def test_tasks_run_one_by_one_are_read_without_a_plan_of_the_suite(tmp_path: Path) -> None:
    tasks = {name: {arm: runs[:1] for arm, runs in BATTERY[name].items()} for name in BATTERY}
    found = collect_suite(write_suite(tmp_path / "loose", tasks, planned=False))
    assert [task.name for task in found.tasks] == sorted(BATTERY)
    assert found.suite.baseline == "none"
    assert found.aggregate.arms[0].iqm is not None
    assert found.aggregate.arms[0].iqm.low is None


def test_scores_of_different_kinds_are_never_averaged(tmp_path: Path) -> None:
    one = {"none": (0.1,), "rope": (0.9,)}
    write_suite(tmp_path, {"a": one}, planned=False)
    write_task(tmp_path / "tasks" / "b", one, primary="validation_loss")
    found = collect_suite(tmp_path).aggregate
    assert found.tasks == []
    assert "1 of 2 tasks has an accuracy as score" in (found.reason or "")
    assert "validation loss" in found.left_out["b"]


def test_an_arm_that_lacks_a_task_is_not_averaged_and_says_so(tmp_path: Path) -> None:
    tasks = {"a": {"none": (0.1,), "rope": (0.9,)}, "b": {"none": (0.1,), "rope": (None,)}}
    arms = {arm.name: arm for arm in collect_suite(write_suite(tmp_path, tasks)).aggregate.arms}
    assert arms["rope"].iqm is None
    assert "no finished run in b" in (arms["rope"].reason or "")
    assert arms["none"].iqm is not None


def test_a_task_that_has_not_begun_stays_in_every_count(tmp_path: Path) -> None:
    out = write_suite(tmp_path, {"a": {"none": (0.1,), "rope": (0.9,)}})
    plan = json.loads((out / "suite_plan.json").read_text())
    plan["tasks"].append({"name": "later", "folder": "tasks/later"})
    write_json(out / "suite_plan.json", plan)
    found = collect_suite(out)
    assert not found.complete
    assert [task.state for task in found.tasks] == ["complete", "not started"]
    assert (found.suite.tasks_planned, found.suite.tasks_complete) == (2, 1)
    assert "not averaged" not in (found.aggregate.reason or "")
    write_suite_report(out)
    assert "Not complete yet" in (out / "report.html").read_text(encoding="utf-8")


def test_folders_that_are_no_suite_or_whose_baselines_differ_are_refused(tmp_path: Path) -> None:
    with pytest.raises(RecipeError, match="holds no tasks"):
        collect_suite(tmp_path)
    write_task(tmp_path / "tasks" / "a", {"none": (0.1,), "rope": (0.9,)})
    write_task(tmp_path / "tasks" / "b", {"rope": (0.1,), "none": (0.9,)})
    with pytest.raises(DataError, match="different baselines"):
        collect_suite(tmp_path)
