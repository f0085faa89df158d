import json
from pathlib import Path

from posattn.training.metrics import MetricsFile, cut_metrics, read_metrics


def write_lines(path: Path) -> None:
    metrics = MetricsFile(path)
    for step in (10, 20, 30):
        metrics.write({"kind": "train", "step": step, "loss": 1.0 / step})
    metrics.write({"kind": "evaluation", "step": 30, "loss": float("nan")})
    metrics.sync()
    metrics.close()


def test_lines_are_strict_json(tmp_path: Path) -> None:
    path = tmp_path / "metrics.jsonl"
    write_lines(path)
    lines = path.read_text().splitlines()
    assert json.loads(lines[-1]) == {
        "kind": "evaluation", "step": 30, "loss": None, "reason": "loss is not a number",
    }  # fmt: skip
    assert [record["step"] for record in read_metrics(path, "train")] == [10, 20, 30]


def test_later_lines_and_a_torn_one_are_cut(tmp_path: Path) -> None:
    path = tmp_path / "metrics.jsonl"
    write_lines(path)
    first = path.read_bytes().split(b"\n")[0]
    with path.open("ab") as file:
        file.write(b'{"kind": "train", "st')
    assert cut_metrics(path, 10) == 3
    assert path.read_bytes() == first + b"\n"


def test_cutting_where_nothing_was_written_gives_an_empty_file(tmp_path: Path) -> None:
    assert cut_metrics(tmp_path / "metrics.jsonl", 5) == 0
    assert read_metrics(tmp_path / "metrics.jsonl") == []
    assert read_metrics(tmp_path / "none.jsonl") == []
