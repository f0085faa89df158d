"""Watching by files alone: studies, suites, tuning and single runs, whole or half-written."""

import json
import os
import time
from dataclasses import replace

import pytest

from posattn.comparison.watching import Watcher, find_runs
from posattn.training.run_folder import RunFolder, Status
from tests.comparison.study_folders import EIGHT_ARMS, write_json, write_study

TWO = EIGHT_ARMS[:2]


def study(out, **options):
    return write_study(out, TWO, (0, 1), speed=False, **options)


def line(step, seconds, loss=2.0, kind="train"):
    record = {"kind": kind, "step": step, "tokens": step * 100, "loss": loss, "seconds": seconds}
    return json.dumps(record) + "\n"


def run_folder(path, *lines, state="running", steps=100):
    path.mkdir(parents=True)
    (path / "recipe.yaml").write_text(f"train: {{steps: {steps}}}\n")
    (path / "metrics.jsonl").write_text("".join(lines))
    RunFolder(path).write_status(Status(state, step=0))
    return path


def test_a_folder_that_is_not_there_yet_is_waited_for(tmp_path):
    watcher = Watcher(tmp_path / "later")
    assert "there is no folder" in (watcher.look().waiting_for or "")
    (tmp_path / "later").mkdir()
    assert "no plan.json and no run" in (watcher.look().waiting_for or "")
    study(tmp_path / "later", diverged=frozenset())
    seen = watcher.look()
    assert seen.waiting_for is None
    assert seen.counts == {"finished": 4}
    assert seen.ended


def test_every_run_of_the_plan_is_there_with_its_state_and_reason(tmp_path):
    study(tmp_path, diverged=frozenset({("none", 1)}), unstarted=frozenset({("none", 0)}))
    (tmp_path / "runs/learned/seed-1/evaluations.json").unlink()
    found = {run.name: run for run in Watcher(tmp_path).look().runs}
    states = {name: run.state for name, run in found.items()}
    assert states == {
        "learned/seed-0": "finished",
        "learned/seed-1": "evaluating",
        "none/seed-0": "waiting",
        "none/seed-1": "diverged",
    }
    assert "loss is not finite" in (found["none/seed-1"].reason or "")
    assert found["learned/seed-0"].evaluation_step == 600


def test_pace_and_time_left_come_from_the_newest_lines(tmp_path):
    slow_start = [line(step, 10.0 * step) for step in range(1, 11)]
    fast_end = [line(step, 100.0 + 0.5 * (step - 10), loss=1.5) for step in range(11, 41)]
    evaluation = line(40, 116.0, 1.25, "evaluation")
    run_folder(tmp_path / "run", *slow_start, *fast_end, evaluation)
    (run,) = Watcher(tmp_path / "run").look().runs
    assert run.state == "training"
    assert run.step == 40
    assert run.steps_per_second == pytest.approx(2.0)
    assert run.tokens_per_second == pytest.approx(200.0)
    assert run.seconds_left == pytest.approx(30.0)
    assert (run.loss, run.evaluation_loss, run.evaluation_step) == (1.5, 1.25, 40)
    assert len(run.losses) == 40


def test_the_time_left_of_a_study_counts_runs_that_wait(tmp_path):
    study(tmp_path, unstarted=frozenset((arm.name, seed) for arm in TWO for seed in (0, 1)))
    plan = json.loads((tmp_path / "plan.json").read_text())
    for arm in plan["arms"]:
        arm["recipe"] = {"train": {"steps": 100}}
    write_json(tmp_path / "plan.json", plan)
    watcher = Watcher(tmp_path)
    assert watcher.look().seconds_left is None
    run_folder(tmp_path / "runs/learned/seed-0", line(25, 5.0), line(50, 10.0))
    assert watcher.look().seconds_left == pytest.approx((50 + 3 * 100) / 5)


def test_files_that_are_half_written_are_read_the_next_time(tmp_path):
    out = study(tmp_path / "study", diverged=frozenset())
    plan = (out / "plan.json").read_text()
    status = (out / "runs/none/seed-1/status.json").read_text()
    (out / "plan.json").write_text(plan[:40])
    watcher = Watcher(out)
    assert watcher.look().runs == ()
    (out / "plan.json").write_text(plan)
    (out / "runs/none/seed-1/status.json").write_text(status[:9])
    assert watcher.look().counts == {"finished": 3, "training": 1}
    (out / "runs/none/seed-1/status.json").write_text(status)
    assert watcher.look().counts == {"finished": 4}


def test_tasks_of_a_suite_and_tuning_are_found_with_their_group(tmp_path):
    for place in ("tasks/order", "tasks/text", "tasks/text/tuning", "tuning"):
        write_study(tmp_path / place, TWO[:1], (0,), speed=False)
    names = [run.name for run in find_runs(tmp_path)]
    assert names == [
        "tuning/learned/seed-0",
        "order/learned/seed-0",
        "text/learned/seed-0",
        "text/tuning/learned/seed-0",
    ]


def test_single_runs_side_by_side_are_found(tmp_path):
    run_folder(tmp_path / "a", line(1, 1.0))
    run_folder(tmp_path / "deep/b", line(1, 1.0), state="finished")
    snapshot = Watcher(tmp_path).look()
    assert {run.name: run.state for run in snapshot.runs} == {"a": "training", "deep/b": "finished"}


def test_a_run_without_news_is_called_silent(tmp_path):
    folder = run_folder(tmp_path / "run", line(1, 1.0), line(2, 2.0))
    watcher = Watcher(folder)
    assert not watcher.look().runs[0].silent
    old = time.time() - 300
    for path in folder.iterdir():
        os.utime(path, (old, old))
    run = watcher.look().runs[0]
    assert run.silent
    assert run.silent_seconds == pytest.approx(300, abs=20)


def test_a_run_that_went_back_shows_the_lines_of_its_new_try(tmp_path):
    folder = run_folder(tmp_path / "run", line(1, 1.0), line(2, 2.0), line(3, 3.0))
    watcher = Watcher(folder)
    watcher.look()
    (folder / "metrics.jsonl").write_text(line(1, 1.0, 1.75))
    run = watcher.look().runs[0]
    assert (run.step, run.losses) == (1, (1.75,))


def test_the_state_of_a_damaged_line_is_told(tmp_path):
    folder = run_folder(tmp_path / "run", line(1, 1.0), "nonsense\n")
    assert Watcher(folder).look().notes == ("1 lines of metrics.jsonl are damaged and left out",)


def test_a_snapshot_is_strict_json(tmp_path):
    study(tmp_path)
    content = json.loads(json.dumps(Watcher(tmp_path).look().to_json(), allow_nan=False))
    assert content["counts"]["finished"] == 4
    assert content["runs"][0]["name"] == "learned/seed-0"
    assert "losses" not in content["runs"][0]


def test_ended_means_every_run(tmp_path):
    study(tmp_path, diverged=frozenset({("none", 1)}))
    snapshot = Watcher(tmp_path).look()
    assert snapshot.ended
    open_run = replace(snapshot.runs[0], state="evaluating")
    assert not replace(snapshot, runs=(*snapshot.runs, open_run)).ended
