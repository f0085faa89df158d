import subprocess
from pathlib import Path

import torch

from posattn.training.environment import describe_environment, git_state


def test_everything_that_decides_numbers_is_recorded(tmp_path: Path) -> None:
    found = describe_environment(torch.device("cpu"), {"seed": 3}, tmp_path)
    assert set(found["versions"]) == {
        "posattn", "torch", "numpy", "tokenizers", "safetensors", "accelerate", "pydantic",
    }  # fmt: skip
    assert found["versions"]["torch"] == torch.__version__
    assert found["threads"] == torch.get_num_threads()
    assert found["seeds"] == {"seed": 3}
    assert found["memory_bytes"] > 2**20
    assert found["cpu"]
    assert found["blas"] != "unknown"
    assert found["git"] is None


def test_git_commit_and_open_changes_are_seen(tmp_path: Path) -> None:
    def git(*arguments: str) -> None:
        who = ["-c", "user.name=a", "-c", "user.email=a@b"]
        command = ["git", "-C", str(tmp_path), *who, *arguments]
        subprocess.run(command, check=True, capture_output=True)

    git("init")
    assert git_state(tmp_path) is None
    (tmp_path / "file").write_text("x")
    git("add", "file")
    git("commit", "-m", "first")
    clean = git_state(tmp_path)
    assert clean is not None
    assert len(clean["commit"]) == 40
    assert clean["dirty"] is False
    (tmp_path / "file").write_text("y")
    assert git_state(tmp_path) == {**clean, "dirty": True}
