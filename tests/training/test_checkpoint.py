import errno
import json
import os
import resource
import subprocess
import sys
from pathlib import Path

import pytest

from posattn.errors import RunFailed
from posattn.training import checkpoint as module
from posattn.training.checkpoint import (
    MARKER,
    find_problem,
    list_checkpoints,
    newest_checkpoint,
    prune_checkpoints,
    save_checkpoint,
)


def save(root: Path, step: int, size: int = 100) -> Path:
    files = {"model.safetensors": bytes([step % 256]) * size, "optimizer.safetensors": b"o" * 10}
    return save_checkpoint(root, step, files, {"step": step, "tally": {"loss": 0.1}})


def test_the_newest_complete_checkpoint_is_found_with_its_state(tmp_path: Path) -> None:
    for step in (5, 20, 100):
        save(tmp_path, step)
    found, passed_over = newest_checkpoint(tmp_path)
    assert found is not None
    assert (found.step, found.folder.name, passed_over) == (100, "step-00000100", [])
    assert found.state["tally"] == {"loss": 0.1}


def test_there_may_be_none(tmp_path: Path) -> None:
    assert newest_checkpoint(tmp_path / "nowhere") == (None, [])


def test_the_marker_holds_the_hash_of_every_file(tmp_path: Path) -> None:
    folder = save(tmp_path, 3)
    marker = json.loads((folder / MARKER).read_text())
    names = {path.name for path in folder.iterdir()} - {MARKER}
    assert set(marker["sha256"]) == names


@pytest.mark.parametrize("name", ["model.safetensors", "optimizer.safetensors", "state.json"])
@pytest.mark.parametrize("damage", ["empty", "truncated", "missing", "changed"])
def test_a_torn_file_makes_resume_fall_back_and_say_why(
    tmp_path: Path, name: str, damage: str
) -> None:
    save(tmp_path, 1)
    torn = save(tmp_path, 2) / name
    content = torn.read_bytes()
    if damage == "missing":
        torn.unlink()
    else:
        torn.write_bytes(
            {"empty": b"", "truncated": content[:-1], "changed": b"#" + content[1:]}[damage]
        )
    found, passed_over = newest_checkpoint(tmp_path)
    assert found is not None
    assert found.step == 1
    assert len(passed_over) == 1
    assert passed_over[0].startswith(f"step-00000002: {name}")


@pytest.mark.parametrize("marker", [None, b"", b"{", b"{}", b'{"sha256": {}}', b'{"sha256": 3}'])
def test_a_missing_or_damaged_marker_makes_resume_fall_back(
    tmp_path: Path, marker: bytes | None
) -> None:
    save(tmp_path, 1)
    path = save(tmp_path, 2) / MARKER
    if marker is None:
        path.unlink()
    else:
        path.write_bytes(marker)
    found, passed_over = newest_checkpoint(tmp_path)
    assert found is not None
    assert found.step == 1
    assert MARKER in passed_over[0]


def test_temporary_folders_are_never_chosen_and_go_with_the_next_save(tmp_path: Path) -> None:
    save(tmp_path, 1)
    save(tmp_path, 9).replace(tmp_path / ".tmp-123-step-00000009")
    (tmp_path / "step-00000010.txt").write_text("not a checkpoint")
    found, passed_over = newest_checkpoint(tmp_path)
    assert found is not None
    assert (found.step, passed_over) == (1, [])
    save(tmp_path, 2)
    assert not list(tmp_path.glob(".tmp-*"))


def test_the_same_checkpoint_can_be_saved_twice(tmp_path: Path) -> None:
    save(tmp_path, 4, size=10)
    folder = save(tmp_path, 4, size=20)
    assert find_problem(folder) is None
    assert (folder / "model.safetensors").stat().st_size == 20
    assert [path.name for path in tmp_path.iterdir()] == ["step-00000004"]


def test_plain_rename_is_not_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise AssertionError("rename fails on Windows if the target exists")

    monkeypatch.setattr(os, "rename", refuse)
    monkeypatch.setattr(Path, "rename", refuse)
    save(tmp_path, 4)
    save(tmp_path, 4)


def test_old_checkpoints_are_deleted_marker_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for step in (1, 2, 3):
        save(tmp_path, step)
    marked = []
    monkeypatch.setattr(
        module.shutil, "rmtree", lambda folder: marked.append((folder / MARKER).exists())
    )
    prune_checkpoints(tmp_path, keep=2)
    assert marked == [False]
    monkeypatch.undo()
    prune_checkpoints(tmp_path, keep=2)
    assert [folder.name for folder in list_checkpoints(tmp_path)] == [
        "step-00000002", "step-00000003",
    ]  # fmt: skip


def test_a_full_disk_is_told_and_leaves_the_last_checkpoint_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    save(tmp_path, 1)

    def full(path: Path, content: bytes) -> None:
        path.write_bytes(content[: len(content) // 2])
        raise OSError(errno.ENOSPC, "No space left on device", str(path))

    monkeypatch.setattr(module, "write_and_sync", full)
    with pytest.raises(RunFailed, match=r"step-00000002 .*the disk is full.*--resume"):
        save(tmp_path, 2)
    assert [path.name for path in tmp_path.iterdir()] == ["step-00000001"]
    found, _ = newest_checkpoint(tmp_path)
    assert found is not None
    assert found.step == 1


def test_a_limit_of_the_system_on_file_size_leaves_the_last_checkpoint_whole(
    tmp_path: Path,
) -> None:
    """A 3 MB model where the system itself refuses to write more than 2 MB."""
    save(tmp_path, 1)
    code = (
        "import sys, pathlib\n"
        "from posattn.errors import RunFailed\n"
        "from posattn.training.checkpoint import save_checkpoint\n"
        "try:\n"
        "    save_checkpoint(pathlib.Path(sys.argv[1]), 2, {'model.safetensors': b'x' * 3000000}, {})\n"
        "except RunFailed as error:\n"
        "    sys.exit(f'told: {error}')\n"
    )

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (2_000_000, 2_000_000))

    done = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path)],
        preexec_fn=limit,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 1
    assert "told: cannot write" in done.stderr
    assert "File too large" in done.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["step-00000001"]
    assert find_problem(tmp_path / "step-00000001") is None
