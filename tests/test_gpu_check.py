"""tools/gpu_check.py: its tiny version runs, proves and writes both tables, on a machine without a GPU."""

import json
import subprocess
import sys
from pathlib import Path

SCRIPT = Path(__file__).parent.parent / "tools" / "gpu_check.py"


def check(*options: str) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, str(SCRIPT), *options]
    return subprocess.run(command, capture_output=True, text=True, timeout=280)


def test_the_tiny_version_proves_and_times_what_it_has_time_for(tmp_path):
    done = check("--interpret", "--minutes", "0.1", "--out", str(tmp_path))
    assert done.returncode == 0, done.stderr[-2000:]
    tables = json.loads((tmp_path / "gpu_check.json").read_text(encoding="utf-8"))
    assert all(row["passed"] for row in tables["Dropout"])
    assert tables["Correctness"][0]["passed"]
    assert tables["Correctness"][-1]["refused"] == "not reached in time"
    assert "## Correctness" in (tmp_path / "gpu_check.md").read_text(encoding="utf-8")
    assert "interpreted" in tables["conditions"]["device"]


def test_without_a_gpu_it_says_so_and_what_runs_all_the_same(tmp_path, monkeypatch):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    done = check("--out", str(tmp_path))
    assert done.returncode == 2
    assert "--interpret" in done.stderr
    assert not list(tmp_path.iterdir())
