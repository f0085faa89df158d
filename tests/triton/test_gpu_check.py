"""tools/gpu_check.py: its tiny version runs, proves and writes both tables, on a machine without a GPU."""

import json
import subprocess
import sys
from pathlib import Path

import torch

import posattn.backends

TOOLS = Path(__file__).parents[2] / "tools"


def check(*options: str) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, str(TOOLS / "gpu_check.py"), *options]
    return subprocess.run(command, capture_output=True, text=True, timeout=280)


class FirstRowOnly:
    """A report with time for one measurement."""

    def __init__(self) -> None:
        self.rows: list[dict[str, object]] = []

    def add(self, table: str, **row: object) -> None:
        self.rows.append(row)

    def has_time(self) -> bool:
        return not self.rows


def test_the_tiny_version_proves_dropout_and_names_what_it_had_no_time_for(tmp_path):
    done = check("--interpret", "--minutes", "0", "--out", str(tmp_path))
    assert done.returncode == 0, done.stderr[-2000:]
    tables = json.loads((tmp_path / "gpu_check.json").read_text(encoding="utf-8"))
    assert all(row["passed"] for row in tables["Dropout"])
    assert {row["refused"] for row in tables["Correctness"]} == {"not reached in time"}
    assert "## Correctness" in (tmp_path / "gpu_check.md").read_text(encoding="utf-8")
    assert "interpreted" in tables["conditions"]["device"]


def test_a_backend_is_proved_against_float64_with_all_gradients(monkeypatch):
    monkeypatch.syspath_prepend(str(TOOLS))
    monkeypatch.setattr(posattn.backends, "names", lambda: ["auto", "eager", "triton"])
    import gpu_proofs

    report = FirstRowOnly()
    gpu_proofs.prove(report, torch.device("cpu"), tiny=True, dtype=torch.float32)
    first, *others = report.rows
    assert first["backend"] == "triton"
    assert first["passed"], first
    assert {row["refused"] for row in others} == {"not reached in time"}


def test_without_a_gpu_it_says_so_and_what_runs_all_the_same(tmp_path, monkeypatch):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    done = check("--out", str(tmp_path / "out"))
    assert done.returncode == 2
    assert "--interpret" in done.stderr
    assert not (tmp_path / "out").exists()
