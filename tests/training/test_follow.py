"""Following a metrics file that is being written: whole lines, each once, and again after a rewind."""

import json

from posattn.training.follow import MetricsFollower
from posattn.training.metrics import MetricsFile, cut_metrics


def steps(lines):
    return [line["step"] for line in lines]


def write(path, *numbers):
    file = MetricsFile(path)
    for number in numbers:
        file.write({"kind": "train", "step": number})
    file.close()


def test_a_file_that_is_not_there_yet_has_no_lines(tmp_path):
    follower = MetricsFollower(tmp_path / "metrics.jsonl")
    assert follower.new_lines() == []
    write(follower.path, 1)
    assert steps(follower.new_lines()) == [1]


def test_every_line_comes_once(tmp_path):
    follower = MetricsFollower(tmp_path / "metrics.jsonl")
    write(follower.path, 1, 2)
    assert steps(follower.new_lines()) == [1, 2]
    assert follower.new_lines() == []
    write(follower.path, 3)
    assert steps(follower.new_lines()) == [3]
    assert follower.restarts == 0


def test_a_line_that_is_half_written_is_read_when_it_is_whole(tmp_path):
    path = tmp_path / "metrics.jsonl"
    follower = MetricsFollower(path)
    text = json.dumps({"step": 7})
    path.write_text(text[:5])
    assert follower.new_lines() == []
    path.write_text(text + "\n")
    assert steps(follower.new_lines()) == [7]
    assert follower.damaged == 0


def test_a_run_that_went_back_to_its_checkpoint_is_read_anew(tmp_path):
    follower = MetricsFollower(tmp_path / "metrics.jsonl")
    write(follower.path, 1, 2, 3)
    follower.new_lines()
    cut_metrics(follower.path, 1)
    write(follower.path, 2)
    assert steps(follower.new_lines()) == [1, 2]
    assert follower.restarts == 1


def test_damaged_lines_are_left_out_and_counted(tmp_path):
    path = tmp_path / "metrics.jsonl"
    path.write_text('{"step": 1}\nnonsense\n[2]\n{"step": 3}\n')
    follower = MetricsFollower(path)
    assert steps(follower.new_lines()) == [1, 3]
    assert follower.damaged == 2
