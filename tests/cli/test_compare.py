"""`posattn compare` and `posattn report`: exit codes and progress (P-5)."""

import io
import shlex
from types import SimpleNamespace

import pytest
from rich.console import Console

from posattn.cli.study_progress import draw, headline, study_progress
from posattn.comparison.progress import RunProgress, StudyProgress
from posattn.errors import ControlError, StudyIncomplete
from tests.comparison.study_folders import EIGHT_ARMS, write_study

RUNS = (
    RunProgress("rope", 0, "finished", 10, 10, 1.5),
    RunProgress("rope", 1, "training", 4, 10, 2.25, 900.0),
    RunProgress("alibi", 0, "diverged", 3, 10, reason="loss is not finite"),
    RunProgress("alibi", 1, "waiting", 0, 10),
)
PROGRESS = StudyProgress("quick", "runs", "", RUNS, seconds=75.0, eta_seconds=40.0)


@pytest.fixture
def ending(monkeypatch, tmp_path):
    """A function that makes a study end in a given way, without running it."""
    seen = SimpleNamespace()

    def end_with(outcome=None):
        def run_study(study, out, *, jobs=None, progress=None):
            seen.study, seen.out, seen.jobs = study, out, jobs
            progress(PROGRESS)
            if outcome is not None:
                raise outcome
            return SimpleNamespace(report=SimpleNamespace(html=tmp_path / "report.html"))

        monkeypatch.setattr("posattn.comparison.run.run_study", run_study)
        return seen

    return end_with


@pytest.mark.parametrize(
    ("outcome", "code", "part"),
    [
        (None, 0, "alibi, seed 0: diverged: loss is not finite"),
        (StudyIncomplete("1 of 3 runs finished"), 5, "Error: 1 of 3 runs finished"),
        (ControlError("the arms differ in train.steps"), 2, "Error: the arms differ"),
        (KeyboardInterrupt(), 130, "Interrupted; nothing is lost"),
    ],
)
def test_the_exit_code_says_how_the_study_ended(
    posattn_command, ending, tmp_path, outcome, code, part
):
    ending(outcome)
    done, out, err = posattn_command("compare", "quick", "--out", tmp_path / "study")
    assert done == code
    assert part in err
    assert (f"Report: {tmp_path / 'report.html'}" in out) == (code == 0)


def test_arguments_reach_the_study(posattn_command, ending, tmp_path):
    seen = ending()
    arguments = ["--jobs", "2", "--set", "train.steps=7", "--set", "seeds=[5]"]
    assert posattn_command("compare", "quick", "--out", tmp_path, *arguments)[0] == 0
    assert (seen.jobs, seen.study.seeds) == (2, (5,))
    assert posattn_command("compare", "quick", "--out", tmp_path, "--jobs", "0")[0] == 2


def test_after_ctrl_c_the_command_that_continues_is_printed(posattn_command, ending, tmp_path):
    ending(KeyboardInterrupt())
    arguments = ["quick", "--out", str(tmp_path / "a b"), "--jobs", "1", "--set", "seeds=[0, 1]"]
    _, _, err = posattn_command("compare", *arguments)
    assert shlex.split(err.rpartition("stopped: ")[2]) == ["posattn", "compare", *arguments]


def test_a_missing_or_bad_study_exits_with_2(posattn_command, tmp_path):
    code, _, err = posattn_command("compare", "quik", "--out", tmp_path)
    assert code == 2
    assert "did you mean 'quick'" in err
    code, _, err = posattn_command("compare", "quick", "--out", tmp_path, "--set", "seedz=1")
    assert code == 2
    assert "did you mean 'seeds'" in err


def test_a_recipe_is_no_study_and_a_study_no_recipe(posattn_command, tiny, tmp_path):
    study = tmp_path / "study.yaml"
    study.write_text("base: quick/base\narms: {a: {}}\n")
    code, _, err = posattn_command("compare", tiny, "--out", tmp_path / "out")
    assert code == 2
    assert (
        err
        == f"Error: '{tiny}' is a recipe, not a study; train it with: posattn train {tiny} --out DIR\n"
    )
    for command in ("show", "train"):
        arguments = ["--out", tmp_path / "out"] if command == "train" else []
        code, _, err = posattn_command(command, study, *arguments)
        assert code == 2
        assert "is a study, not a recipe; run it with: posattn compare" in err


def test_a_report_of_a_folder_that_is_no_study_exits_with_2(posattn_command, tmp_path):
    code, _, err = posattn_command("report", tmp_path)
    assert code == 2
    assert str(tmp_path) in err


def test_the_headline_counts_runs_and_time():
    assert headline(PROGRESS) == (
        "quick: 1 of 4 runs, 1 failed, training, 1 min 15 s so far, about 40 s of training left"
    )


def test_the_grid_shows_arms_by_seeds():
    console = Console(width=100, record=True, file=io.StringIO())
    console.print(draw(PROGRESS))
    lines = [line.strip() for line in console.export_text().splitlines()]
    assert any("seed 0" in line and "seed 1" in line for line in lines)
    rope = next(line for line in lines if line.startswith("rope"))
    assert "done, 1.500" in rope
    assert "40%, 2.250" in rope
    assert "diverged" in next(line for line in lines if line.startswith("alibi"))


def test_without_a_terminal_every_change_of_state_is_one_line(capsys):
    with study_progress() as show:
        show(PROGRESS)
        show(PROGRESS)
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 4  # the stage, and three runs that are no longer waiting


def test_on_a_terminal_the_grid_is_live(monkeypatch, capsys):
    monkeypatch.setattr("sys.stderr.isatty", lambda: True, raising=False)
    with study_progress() as show:
        show(PROGRESS)
    assert "rope" in capsys.readouterr().err


def test_check_writes_nothing_and_exits_with_1_where_the_report_is_not_what_its_runs_give(
    posattn_command, tmp_path
):
    out = write_study(tmp_path / "study", EIGHT_ARMS[:1], (0, 1), diverged=frozenset(), speed=False)
    assert posattn_command("report", out)[0] == 0
    done, said, _ = posattn_command("report", out, "--check")
    assert done == 0
    assert said.startswith("Equal: ")
    assert "recomputed from the files of 2 runs" in said
    (out / "figures/curves.csv").write_text("arm\n")
    done, _, said = posattn_command("report", out, "--check")
    assert done == 1
    assert "is not what its runs give" in said
    assert "figures/curves.csv: line 1" in said
    assert (out / "figures/curves.csv").read_text() == "arm\n"
