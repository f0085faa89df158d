"""`posattn train`: exit codes, progress, and how to go on after Ctrl-C (P-5)."""

import json
import os
import shlex
import signal
import subprocess
import sys
import time

import pytest

from posattn.cli.progress import describe, training_progress
from posattn.errors import DataError, RunFailed
from posattn.training.run_inputs import Progress, RunResult

STEP = Progress(step=2, steps=10, loss=1.25, tokens_per_second=1234.5, stage="training")


@pytest.fixture
def ending(monkeypatch):
    """A function that makes training end in a given way, without training."""

    def end_with(outcome):
        def train_recipe(recipe, out, *, resume=False, progress=None):
            progress(STEP)
            if isinstance(outcome, BaseException):
                raise outcome
            return RunResult(outcome, 2, out, "loss is not finite", ("one note",))

        monkeypatch.setattr("posattn.recipe.run.train_recipe", train_recipe)

    return end_with


@pytest.mark.parametrize(
    ("outcome", "code", "part"),
    [
        ("finished", 0, "Note: one note"),
        ("diverged", 4, "diverged at step 2: loss is not finite"),
        (RunFailed("the disk is full"), 4, "Error: the disk is full"),
        (DataError("the corpus is empty"), 3, "Error: the corpus is empty"),
        (KeyboardInterrupt(), 130, "Interrupted"),
    ],
)
def test_the_exit_code_says_how_the_run_ended(
    posattn_command, ending, tiny, tmp_path, outcome, code, part
):
    ending(outcome)
    done, out, err = posattn_command("train", tiny, "--out", tmp_path / "run")
    assert done == code
    assert part in err
    assert ("final" in out) == (code == 0)
    assert "Traceback" not in err


def test_after_ctrl_c_the_command_that_continues_is_printed(
    posattn_command, ending, tiny, tmp_path
):
    ending(KeyboardInterrupt())
    arguments = [tiny, "--out", tmp_path / "a run", "--set", "encoder.mechanism={name: alibi}"]
    _, _, err = posattn_command("train", *arguments)
    again = shlex.split(err.rpartition("stopped: ")[2])
    assert again == [
        *("posattn", "train", tiny, "--out", str(tmp_path / "a run"), "--resume"),
        *("--set", "encoder.mechanism={name: alibi}"),
    ]


def test_a_bad_recipe_leaves_no_run_folder(posattn_command, tiny, tmp_path):
    code, _, _ = posattn_command("train", tiny, "--out", tmp_path / "run", "--set", "train.lrr=1")
    assert code == 2
    assert not (tmp_path / "run").exists()


def test_a_backend_that_refuses_is_told_before_the_run_begins(posattn_command, tiny, tmp_path):
    wanted = ("encoder.backend=triton", "encoder.mechanism=disentangled", "train.device=cpu")
    given = [word for one in wanted for word in ("--set", one)]
    code, out, err = posattn_command("train", tiny, "--out", tmp_path / "run", *given)
    assert (code, out) == (2, "")
    assert "Error: " in err
    assert "triton" in err
    assert not (tmp_path / "run").exists()


def test_a_folder_that_weights_came_from_is_needed_to_begin_and_not_to_resume(
    posattn_command, ending, tiny, tmp_path
):
    ending("finished")
    start = tmp_path / "elsewhere"
    given = ("train", tiny, "--set", f"train.start={{path: {start}}}", "--out", tmp_path / "run")
    code, _, err = posattn_command(*given, "--resume")
    assert code != 0
    assert str(start) in err
    (tmp_path / "run").mkdir()
    assert posattn_command(*given, "--resume")[0] == 0


def test_a_recipe_is_trained_and_a_second_run_into_the_folder_is_refused(
    posattn_command, tiny, tmp_path
):
    out = tmp_path / "run"
    code, printed, err = posattn_command("train", tiny, "--out", out)
    assert code == 0, err
    assert str(out / "final") in printed
    assert (out / "final" / "model.safetensors").is_file()
    assert "tiny: step 3 of 3" in err
    code, _, err = posattn_command("train", tiny, "--out", out)
    assert code == 2
    assert "--resume" in err
    assert posattn_command("train", tiny, "--out", out, "--resume")[0] == 0


def test_ctrl_c_saves_exits_with_130_and_the_run_can_go_on(tiny, tmp_path):
    out = tmp_path / "run"
    command = [sys.executable, "-m", "posattn", "train", tiny, "--out", str(out)]
    settings = ["--set", "train.steps=100000"]
    process = subprocess.Popen(
        [*command, *settings], stderr=subprocess.PIPE, text=True, env=dict(os.environ)
    )
    deadline = time.monotonic() + 120
    while not (out / "metrics.jsonl").is_file() or not (out / "metrics.jsonl").read_text():
        assert process.poll() is None, process.stderr.read()
        assert time.monotonic() < deadline
        time.sleep(0.1)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=120)
    assert process.returncode == 130, err
    assert "To continue where it stopped: posattn train" in err
    status = json.loads((out / "status.json").read_text())
    assert status["state"] == "interrupted"
    assert list((out / "checkpoints").glob("step-*/COMPLETE"))


def test_progress_is_told_in_words():
    assert describe(STEP) == "training, loss 1.250, 1,234 tokens/s"
    assert describe(Progress(0, 0, None, 0.0, "preparing")) == "preparing"


def test_before_the_first_step_no_step_is_shown(capsys):
    with training_progress("tiny") as draw:
        draw(Progress(0, 0, None, 0.0, "reading the text"))
        draw(STEP)
    assert capsys.readouterr().err.splitlines() == [
        "tiny: reading the text",
        "tiny: step 2 of 10, training, loss 1.250, 1,234 tokens/s",
    ]


def test_progress_is_drawn_on_a_terminal(monkeypatch, capsys):
    monkeypatch.setattr("sys.stderr.isatty", lambda: True, raising=False)
    with training_progress("tiny") as draw:
        draw(STEP)
    shown = capsys.readouterr().err
    assert "2/10" in shown
    assert "loss 1.250" in shown
