"""A suite that runs: every task in its folder, failures that stop no other, going on, refusals."""

from pathlib import Path
from typing import Any

import pytest

from posattn.comparison.progress import StudyProgress
from posattn.comparison.run import run_study
from posattn.comparison.study import Study, load_study
from posattn.comparison.suite import run_suite
from posattn.comparison.suite.plan import make_suite_plan
from posattn.comparison.suite.schema import SuiteResults
from posattn.errors import ControlError, DataError, RecipeError, StudyIncomplete, SuiteIncomplete
from tests.comparison.inline_pool import InlinePool
from tests.comparison.suite_folders import BATTERY, write_task

SUITE = """\
title: Two tasks
base: quick/base
shared:
  encoder: {num_layers: 1, hidden_size: 16, num_heads: 2}
  data: {corpus: {name: pydoc}, tokenizer: {name: characters}, max_length: 16}
  train: {steps: 2, batch_size: 2, log_every: 1, evaluate_every: 2, evaluation_tokens: 64, threads: 1}
varies: [encoder.mechanism]
arms:
  none: {encoder.mechanism: none}
  rope: {encoder.mechanism: rope}
baseline: none
seeds: [0]
evaluations: [{name: validation, tokens: 64}]
primary: validation_accuracy
tasks:
  short:
  long:
    shared: {data.max_length: 24}
    leave_out: {rope: to see that it is told}
"""


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("file") / "two.yaml"
    file.write_text(SUITE)
    return file


@pytest.fixture(scope="module")
def ran(
    path: Path, text_cache: Path, tmp_path_factory: pytest.TempPathFactory
) -> tuple[Path, list[InlinePool], list[StudyProgress]]:
    """Run the suite once: first one of its tasks, then all."""
    pools: list[InlinePool] = []
    shown: list[StudyProgress] = []

    def make_pool(*_: object) -> InlinePool:
        pools.append(InlinePool())
        return pools[-1]

    out = tmp_path_factory.mktemp("suite") / "out"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("posattn.comparison.suite.run.make_pool", make_pool)
        run_suite(path, out, jobs=1, only=["long"])
        run_suite(path, out, jobs=1, progress=shown.append)
    return out, pools, shown


Ran = tuple[Path, list[InlinePool], list[StudyProgress]]


def test_every_task_leaves_a_whole_study_and_the_suite_its_report(ran: Ran) -> None:
    for name in ("tasks/short", "tasks/long"):
        for file in ("study.yaml", "plan.json", "results.json", "report.html"):
            assert (ran[0] / name / file).is_file()
    for file in ("study.yaml", "suite_plan.json", "suite.json", "report.html", "report.md"):
        assert (ran[0] / file).is_file()
    found = SuiteResults.model_validate_json((ran[0] / "suite.json").read_text())
    assert [task.name for task in found.tasks] == ["short", "long"]
    assert found.complete
    assert found.task("long").left_out == {"rope": "to see that it is told"}
    assert "rope: to see that it is told" in (ran[0] / "report.html").read_text()


def test_all_tasks_share_worker_processes_and_what_is_done_is_not_run_again(ran: Ran) -> None:
    first, second = ran[1]
    none, rope = ["self-test of none", "none, seed 0"], ["self-test of rope", "rope, seed 0"]
    assert first.keys == [*none, "closed"]
    assert sorted(second.keys) == sorted([*none, *rope, "closed"])


def test_progress_tells_the_task_and_what_is_left_of_all(ran: Ran) -> None:
    shares = [progress.suite for progress in ran[2] if progress.suite is not None]
    assert len(shares) == len(ran[2])
    first, last = shares[0], shares[-1]
    assert (first.suite, first.task, first.number, first.tasks) == ("two", "short", 1, 2)
    assert (first.runs_ended, first.runs, first.eta_seconds) == (1, 3, None)
    assert (last.task, last.number, last.runs_ended, last.eta_seconds) == ("long", 2, 3, 0.0)


def test_the_stored_suite_makes_the_same_studies(path: Path, ran: Ran) -> None:
    again = load_study(ran[0] / "study.yaml", ["name=two"])
    assert make_suite_plan(again).to_json() == make_suite_plan(load_study(path)).to_json()


def test_a_task_that_fails_stops_no_other_and_the_worst_decides_the_exit_code(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun, long_fails = [], iter([ControlError("batches differ"), DataError("no text")])

    def run(study: Study, out: Path, **_: Any) -> None:
        begun.append(study.name)
        write_task(out, {"none": (0.1,), "rope": (0.9,)})
        raise StudyIncomplete("1 of 2 runs finished") if study.name == "short" else next(long_fails)

    monkeypatch.setattr("posattn.comparison.suite.run.run_study", run)
    for code in (2, 3):
        with pytest.raises(SuiteIncomplete, match="short: 1 of 2 runs finished") as error:
            run_suite(path, tmp_path / str(code))
        assert error.value.exit_code == code
        assert (tmp_path / str(code) / "report.html").is_file()
    assert begun == ["short", "long"] * 2


def test_what_cannot_run_in_any_task_is_refused_before_the_first_step(
    path: Path, tmp_path: Path
) -> None:
    wrong = load_study(path, ["tasks.long.shared.encoder.num_heads=3"])
    with pytest.raises(RecipeError, match=r"task 'long': .*num_heads"):
        run_suite(wrong, tmp_path / "out")
    apart = ["tasks.short.arms.rope.train.steps=9"]
    with pytest.raises(ControlError, match="task 'short': the arms differ"):
        run_suite(load_study(path, apart), tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_unknown_tasks_and_folders_of_the_other_kind_are_refused(
    path: Path, tmp_path: Path
) -> None:
    with pytest.raises(RecipeError, match=r"'lnog' is no task .*\(tasks: short, long\)"):
        run_suite(path, tmp_path, only=["lnog"])
    with pytest.raises(RecipeError, match="has no tasks; run it with run_study"):
        run_suite("smoke", tmp_path)
    with pytest.raises(RecipeError, match="holds a study without tasks"):
        run_suite(path, write_task(tmp_path / "study", BATTERY["offset"]))
    (tmp_path / "suite_plan.json").write_text("{}")
    with pytest.raises(RecipeError, match="holds a study with tasks"):
        run_study("smoke", tmp_path)
