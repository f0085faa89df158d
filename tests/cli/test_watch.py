"""`posattn watch` and `posattn tensorboard`: what they print, and that leaving them is no accident."""

import io
import json
import sys

import pytest
from rich.console import Console

from posattn.cli import watch as watch_command
from posattn.cli.watch_table import headline, sparkline, view
from posattn.comparison import event_files
from posattn.comparison.watching import Watcher
from posattn.comparison.watching.snapshot import RunSnapshot, Snapshot
from tests.comparison.study_folders import EIGHT_ARMS, write_study
from tests.comparison.test_event_files import Writers


def run(name, state="training", **changes):
    values = {
        "name": name,
        "group": "",
        "arm": name,
        "seed": 0,
        "state": state,
        "step": 10,
        "steps": 40,
        "tokens": 1000,
        "loss": 2.5,
        "tokens_per_second": 1234.0,
        "steps_per_second": 0.5,
        "seconds_left": 60.0,
        "evaluation_step": 10,
        "evaluation_loss": 2.25,
        "silent_seconds": 1.0,
        "silent": False,
        "reason": None,
        "losses": (3.0, 2.75, 2.5),
    }
    return RunSnapshot(**values | changes)


def printed(snapshot, width, height=None):
    console = Console(file=io.StringIO(), width=width, height=height or 50)
    console.print(view(snapshot, width, height))
    return console.file.getvalue()


def of(*runs, **changes):
    values = {"folder": "runs/x", "waiting_for": None, "runs": runs, "reports": (), "notes": ()}
    return Snapshot(**values | changes)


@pytest.fixture
def study(tmp_path):
    out = write_study(tmp_path / "study", EIGHT_ARMS[:2], (0, 2), speed=False)
    (out / "report.html").touch()
    return out


def test_a_row_has_state_step_loss_speed_time_left_evaluation_and_curve():
    text = printed(of(run("rope")), 120)
    for part in ("rope", "training", "10 of 40", "2.500", "1,234", "1 min 00 s", "2.250 at 10"):
        assert part in text
    assert sparkline((3.0, 2.75, 2.5)) in text


def test_reasons_stand_below_whole():
    lost = run("none", "failed", reason="the disk is full")
    text = printed(of(run("rope"), lost), 100)
    assert "none: the disk is full" in text
    assert "1 failed" in text


def test_a_narrow_terminal_has_all_but_curve_and_evaluation():
    text = printed(of(run("rope")), 70)
    assert "10 of 40" in text
    assert "2.250 at 10" not in text
    assert max(map(len, text.splitlines())) <= 70


def test_a_low_terminal_shows_the_liveliest_runs_first():
    done = [run(f"done{i}", "finished") for i in range(30)]
    text = printed(of(*done, run("alive")), 100, height=20)
    assert "alive" in text
    assert "and 19 more runs" in text
    assert len(text.splitlines()) <= 20


def test_the_headline_counts_and_tells_the_time_left_and_silence():
    snapshot = of(run("a"), run("b", silent=True), run("c", "killed"), run("d", "finished"))
    line = headline(snapshot)
    assert line.startswith("runs/x: 1 of 4 runs finished, 2 training, 1 killed")
    assert "1 silent" in line
    assert "about 1 min 00 s of training left" in line


def test_the_sparkline_falls_with_the_loss_and_is_as_wide_as_told():
    assert sparkline([8.0, 7.0, 6.0, 5.0, 4.0, 3.0, 2.0, 1.0]) == "█▇▆▅▄▃▂▁"
    assert len(sparkline([float(i) for i in range(1000)], 16)) == 16
    assert sparkline([1.0]) == ""
    assert sparkline([2.0, 2.0]) == "▁▁"


def test_once_and_json_print_and_end(posattn_command, study):
    code, out, _ = posattn_command("watch", study, "--once")
    assert code == 0
    assert "learned/seed-0" in out
    code, out, _ = posattn_command("watch", study, "--json")
    assert code == 0
    assert json.loads(out)["counts"] == {"finished": 3, "diverged": 1}
    code, out, _ = posattn_command("watch", study / "nowhere", "--once")
    assert code == 0
    assert "Waiting: there is no folder" in " ".join(out.split())


def test_a_study_that_has_ended_with_a_report_is_left_by_itself(posattn_command, study):
    code, out, _ = posattn_command("watch", study)
    assert code == 0
    said = " ".join(out.split()).count("3 of 4 runs finished")
    assert said == 2, "the line of the change, and the table at the end"


def test_ctrl_c_leaves_with_the_table_and_no_error(posattn_command, study, monkeypatch):
    (study / "report.html").unlink()

    def interrupt(seconds):
        raise KeyboardInterrupt

    monkeypatch.setattr(watch_command.time, "sleep", interrupt)
    code, out, err = posattn_command("watch", study)
    assert code == 0
    assert "learned/seed-0" in out
    assert err == ""


def test_on_a_terminal_the_screen_is_redrawn_and_given_back(study, monkeypatch):
    class Terminal(io.StringIO):
        def isatty(self):
            return True

    terminal = Terminal()
    monkeypatch.setattr(sys, "stdout", terminal)
    monkeypatch.setenv("TERM", "xterm")
    snapshot = watch_command._live(Watcher(study), 0.1)
    assert snapshot.ended
    text = terminal.getvalue()
    assert text.count("\x1b[?1049h") == text.count("\x1b[?1049l") == 1
    assert "learned/seed-0" in text


def test_tensorboard_tells_where_the_event_files_are(posattn_command, study, monkeypatch):
    writers = Writers()
    monkeypatch.setattr(event_files, "open_event_file", writers)
    code, out, _ = posattn_command("tensorboard", study)
    assert code == 0
    assert "of 4 runs in" in out
    assert f"tensorboard --logdir {study / 'tensorboard'}" in out
    code, out, _ = posattn_command("tensorboard", study, "--follow", "--out", study / "logs")
    assert code == 0
    assert "of 4 runs in" in out


def test_tensorboard_refuses_a_folder_without_runs(posattn_command, tmp_path):
    code, _, err = posattn_command("tensorboard", tmp_path)
    assert code == 2
    assert "holds no run with a metrics.jsonl" in err
