"""A whole study: what it leaves behind, and what happens when runs die, differ or are stopped."""

import hashlib
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pytest

from posattn.comparison.evaluations.validation import ValidationEvaluation
from posattn.comparison.execute import RunTask, execute_run, is_done
from posattn.comparison.plan import make_plan
from posattn.comparison.progress import StudyProgress
from posattn.comparison.report.standards import running
from posattn.comparison.results import collect
from posattn.comparison.run import StudyResult, default_jobs, run_study
from posattn.comparison.study import load_study
from posattn.errors import ControlError, RecipeError, RunFailed, StudyIncomplete

Smoke = tuple[StudyResult, list[StudyProgress]]

SCRIPT = """\
import os, signal, sys
from posattn.comparison.run import run_study

def show(progress):
    for run in progress.runs:
        if run.process:
            print("worker", run.process, flush=True)
    if sys.argv[3] != "never" and any(run.step >= 5 for run in progress.runs):
        os.kill(os.getpid(), getattr(signal, sys.argv[3]))

if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's `&` has it ignored
    from posattn.comparison.study import load_study
    study = load_study("smoke", ["train.steps=" + sys.argv[2], "evaluations=[validation, length]"])
    run_study(study, sys.argv[1], jobs=2, progress=show)
"""


def strict_json(path: Path) -> Any:
    def refuse(constant: str) -> None:
        raise AssertionError(f"{path} holds {constant}")

    return json.loads(path.read_text(encoding="utf-8"), parse_constant=refuse)


def numbers(out: Path) -> dict[str, Any]:
    """Return everything of a study's runs that must not depend on how often it was stopped."""
    found: dict[str, Any] = {}
    for folder in sorted(out.glob("runs/*/*")):
        lines = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
        for line in lines:
            for key in ("seconds", "evaluation_seconds"):
                line.pop(key, None)
        weights = hashlib.sha256((folder / "final" / "model.safetensors").read_bytes()).hexdigest()
        examples = np.load(folder / "examples.npz")
        found[f"{folder.parent.name}/{folder.name}"] = {
            "metrics": lines,
            "weights": weights,
            "evaluations": strict_json(folder / "evaluations.json"),
            "examples": {name: examples[name].tolist() for name in examples.files},
        }
    return found


def script(tmp_path: Path, out: Path, steps: int, stop: str) -> "subprocess.Popen[str]":
    file = tmp_path / "study_script.py"
    file.write_text(SCRIPT)
    arguments = [sys.executable, str(file), str(out), str(steps), stop]
    return subprocess.Popen(arguments, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def workers_of(output: str) -> set[int]:
    return {int(line.split()[1]) for line in output.splitlines() if line.startswith("worker")}


def test_a_study_leaves_all_its_files(smoke: Smoke) -> None:
    out = smoke[0].folder
    for name in (
        "study.yaml",
        "plan.json",
        "speed.json",
        "results.json",
        "report.html",
        "report.md",
    ):
        assert (out / name).is_file(), name
    for run in smoke[0].runs:
        assert run.state == "finished"
        assert run.step == 20
        for name in (
            "recipe.yaml",
            "metrics.jsonl",
            "evaluations.json",
            "examples.npz",
            "data.json",
        ):
            assert (out / run.folder / name).is_file(), name


def test_the_report_of_a_real_study_finds_its_proofs_of_control(smoke: Smoke) -> None:
    results = collect(smoke[0].folder)
    for judge in (running.declared_factors, running.same_batches, running.same_start):
        assert judge(results).status == "yes", judge(results).how


def test_all_json_of_a_study_is_strict(smoke: Smoke) -> None:
    files = list(smoke[0].folder.rglob("*.json"))
    assert len(files) > 10
    for path in files:
        strict_json(path)


def test_every_rule_of_control_holds_and_is_recorded(smoke: Smoke) -> None:
    rules = strict_json(smoke[0].folder / "plan.json")["control"]
    assert len(rules) == 12
    assert [rule["rule"] for rule in rules if not rule["held"]] == []
    batches = next(rule for rule in rules if "batches" in rule["rule"])
    assert batches["detail"] == "2 pairs of runs of 2 seed(s), 8 values each equal"


def test_lengths_beyond_a_learned_table_are_null_with_the_reason(smoke: Smoke) -> None:
    out = smoke[0].folder
    learned = strict_json(out / "runs/learned/seed-0/evaluations.json")["length"]
    assert learned["lengths"] == [32, 64, 128]
    assert learned["loss"][2] is None
    assert learned["targets"][2] is None
    assert learned["refused"] == {"128": "the model takes at most 64 tokens"}
    rope = strict_json(out / "runs/rope/seed-0/evaluations.json")["length"]
    assert None not in rope["loss"]
    assert rope["refused"] == {}


def test_arms_are_judged_on_the_same_samples_and_targets(smoke: Smoke) -> None:
    files = [smoke[0].folder / run.folder / "examples.npz" for run in smoke[0].runs]
    first, *others = (np.load(file) for file in files)
    for other in others:
        assert np.array_equal(first["sample_ids"], other["sample_ids"])
        assert np.array_equal(first["targets"], other["targets"])


def test_the_sums_of_samples_give_the_loss(smoke: Smoke) -> None:
    for run in smoke[0].runs:
        folder = smoke[0].folder / run.folder
        sums, scores = np.load(folder / "examples.npz"), strict_json(folder / "evaluations.json")
        total = sums["targets"].sum()
        assert total == scores["validation"]["targets"] == sum(scores["position"]["targets"])
        assert sums["loss_sum"].sum() / total == pytest.approx(scores["validation"]["loss"])
        assert sums["correct"].sum() / total == pytest.approx(scores["validation"]["accuracy"])


def test_speed_is_interleaved_and_every_time_is_kept(smoke: Smoke) -> None:
    speed = strict_json(smoke[0].folder / "speed.json")
    steps = [line for line in speed["rounds"] if line["stage"] == "training_step"]
    assert [(line["round"], line["arm"]) for line in steps] == [
        (0, "learned"),
        (0, "rope"),
        (1, "rope"),
        (1, "learned"),
    ]
    assert all(line["seconds"] > 0 and line["tokens"] == 256 for line in speed["rounds"])
    assert speed["conditions"]["threads"] == 1
    assert speed["conditions"]["length"] == 32
    assert all(memory > 0 for memory in speed["peak_memory_bytes"].values())


def test_progress_tells_every_run_and_ends_complete(smoke: Smoke) -> None:
    shown = smoke[1]
    assert [run.state for run in shown[0].runs] == ["waiting"] * 4
    assert shown[-1].finished == shown[-1].total == 4
    assert shown[-1].stage == "done"
    assert list(dict.fromkeys(progress.stage for progress in shown)) == [
        "data",
        "self-test",
        "runs",
        "control",
        "measurements",
        "report",
        "done",
    ]


def test_a_study_that_is_done_is_not_run_again(smoke: Smoke) -> None:
    out = smoke[0].folder
    before = {path: path.stat().st_mtime_ns for path in out.glob("runs/**/*") if path.is_file()}
    speed = (out / "speed.json").stat().st_mtime_ns
    run_study("smoke", out, jobs=1)
    after = {path: path.stat().st_mtime_ns for path in out.glob("runs/**/*") if path.is_file()}
    assert {p: t for p, t in after.items() if p.name != ".lock"} == {
        p: t for p, t in before.items() if p.name != ".lock"
    }
    assert (out / "speed.json").stat().st_mtime_ns == speed


def test_a_changed_study_is_refused_before_anything_is_touched(smoke: Smoke) -> None:
    before = (smoke[0].folder / "plan.json").read_bytes()
    with pytest.raises(RecipeError, match=r"train\.steps: the folder has 20, the study has 21"):
        run_study(load_study("smoke", ["train.steps=21"]), smoke[0].folder)
    assert (smoke[0].folder / "plan.json").read_bytes() == before


def test_tampered_batches_are_caught_and_the_report_shows_it(smoke: Smoke, tmp_path: Path) -> None:
    out = tmp_path / "tampered"
    shutil.copytree(smoke[0].folder, out)
    metrics = out / "runs/rope/seed-1/metrics.jsonl"
    lines = [json.loads(line) for line in metrics.read_text().splitlines()]
    next(line for line in lines if line["step"] == 10)["batches"] = "0" * 64
    metrics.write_text("".join(json.dumps(line) + "\n" for line in lines))
    with pytest.raises(ControlError) as error:
        run_study("smoke", out, jobs=1)
    wanted = "arms learned and rope, seed 1: the batches up to step 10 differ"
    assert wanted in str(error.value)
    rules = strict_json(out / "results.json")["control"]
    assert [rule["detail"] for rule in rules if rule["held"] is False] == [wanted]


def test_tampered_starting_values_are_caught(smoke: Smoke, tmp_path: Path) -> None:
    out = tmp_path / "tampered"
    shutil.copytree(smoke[0].folder, out)
    path = out / "runs/rope/seed-0/parameters.json"
    content = json.loads(path.read_text())
    next(iter(content["tensors"].values()))["digest"] = "0" * 64
    path.write_text(json.dumps(content))
    with pytest.raises(ControlError, match=r"shared parameters start bit-equal: .*seed 0: step 0"):
        run_study("smoke", out, jobs=1)


@pytest.mark.usefixtures("text_cache")
def test_a_killed_and_a_diverged_run_leave_a_report_and_can_go_on(tmp_path: Path) -> None:
    out, killed = tmp_path / "study", set[int]()

    def kill_rope(progress: StudyProgress) -> None:
        rope = next(run for run in progress.runs if run.arm == "rope")
        if rope.process and not killed:
            killed.add(rope.process)
            os.kill(rope.process, signal.SIGKILL)

    overrides = [
        "seeds=[0]",
        "train.steps=60",
        "evaluations=[validation]",
        "arms.BaNaNa={encoder: {mechanism: rope}, train: {learning_rate: 1.0e+30, clip_norm: null}}",
        "declared={train: a rate at which the loss becomes NaN}",
        "confounded=BaNaNa is to diverge",
    ]
    study = load_study("smoke", overrides)
    with pytest.raises(StudyIncomplete) as error:
        run_study(study, out, jobs=2, progress=kill_rope)
    assert error.value.exit_code == 5
    assert "1 of 3 runs finished" in str(error.value)
    assert "rope, seed 0: killed" in str(error.value)
    assert "SIGKILL" in str(error.value)
    assert "BaNaNa, seed 0: diverged" in str(error.value)

    results = strict_json(out / "results.json")
    assert results["study"]["runs_finished"] == 1
    assert results["study"]["runs_planned"] == 3
    states = {run["arm"]: run["state"] for run in results["runs"]}
    assert states == {"learned": "finished", "rope": "killed", "BaNaNa": "diverged"}
    reasons = {run["arm"]: run["reason"] for run in results["runs"]}
    assert reasons["BaNaNa"]
    assert "SIGKILL" in reasons["rope"]
    assert (out / "report.html").is_file()

    with pytest.raises(StudyIncomplete, match="2 of 3 runs finished") as error:
        run_study(study, out, jobs=2)
    assert "rope" not in str(error.value)


@pytest.mark.usefixtures("text_cache")
def test_a_study_without_any_finished_run_still_gets_its_report(tmp_path: Path) -> None:
    overrides = [
        "seeds=[0]",
        "evaluations=[validation]",
        "train={learning_rate: 1.0e+30, clip_norm: null}",
    ]
    with pytest.raises(StudyIncomplete, match="0 of 2 runs finished"):
        run_study(load_study("smoke", overrides), tmp_path / "study", jobs=2)
    assert strict_json(tmp_path / "study" / "results.json")["study"]["runs_finished"] == 0


def test_ctrl_c_and_the_same_command_again_give_the_results_of_a_straight_run(
    text_cache: Path, tmp_path: Path
) -> None:
    straight = script(tmp_path, tmp_path / "straight", 60, "never")
    assert straight.wait(timeout=120) == 0, straight.communicate()[1]

    stopped = script(tmp_path, tmp_path / "stopped", 60, "SIGINT")
    output, errors = stopped.communicate(timeout=120)
    assert stopped.returncode in (-signal.SIGINT, 130), errors
    assert workers_of(output)
    assert not any(psutil.pid_exists(process) for process in workers_of(output))
    statuses = [strict_json(path) for path in (tmp_path / "stopped").glob("runs/*/*/status.json")]
    assert "interrupted" in {status["state"] for status in statuses}
    assert not (tmp_path / "stopped" / "results.json").exists()

    again = script(tmp_path, tmp_path / "stopped", 60, "never")
    assert again.wait(timeout=120) == 0, again.communicate()[1]
    assert numbers(tmp_path / "stopped") == numbers(tmp_path / "straight")


def test_workers_of_a_killed_study_save_and_end_by_themselves(
    text_cache: Path, tmp_path: Path
) -> None:
    study = script(tmp_path, tmp_path / "study", 400, "SIGKILL")
    output, errors = study.communicate(timeout=120)
    assert study.returncode == -signal.SIGKILL, errors
    deadline = time.monotonic() + 30
    while any(psutil.pid_exists(process) for process in workers_of(output)):
        assert time.monotonic() < deadline, "a worker outlives its study"
        time.sleep(0.1)
    statuses = [strict_json(path) for path in (tmp_path / "study").glob("runs/*/*/status.json")]
    assert "interrupted" in {status["state"] for status in statuses}


@pytest.mark.usefixtures("text_cache")
def test_an_evaluation_that_fails_is_told_and_made_up_for_without_training_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = make_plan(load_study("smoke"))
    run = plan.runs[1]
    task = RunTask(run.key, tmp_path / "run", run.recipe, tuple(plan.study.evaluations))

    def fail(self: ValidationEvaluation, subject: object) -> dict[str, Any]:
        raise ZeroDivisionError("no reason")

    with monkeypatch.context() as patch:
        patch.setattr(ValidationEvaluation, "evaluate", fail)
        with pytest.raises(
            RunFailed, match="trained, but the evaluation 'validation' failed: Zero"
        ):
            execute_run(task, lambda _: None)
    assert not is_done(task.folder)
    weights = (task.folder / "final" / "model.safetensors").stat().st_mtime_ns
    assert execute_run(task, lambda _: None) == "finished"
    assert is_done(task.folder)
    assert (task.folder / "final" / "model.safetensors").stat().st_mtime_ns == weights


def test_by_default_as_many_runs_as_cores_allow() -> None:
    plan = make_plan(load_study("smoke", ["train.device=cpu"]))
    assert 1 <= default_jobs(plan) <= len(plan.runs)
    cores = len(os.sched_getaffinity(0))
    wide = make_plan(load_study("smoke", ["train.device=cpu", f"train.threads={2 * cores}"]))
    assert default_jobs(wide) == 1
