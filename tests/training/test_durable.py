import errno
import json
import subprocess
import sys
from pathlib import Path

import pytest

from posattn.errors import RunFailed
from posattn.training import durable
from posattn.training.durable import (
    on_disk,
    read_json,
    remove_temporary,
    replace_folder,
    strict_json,
    write_bytes,
    write_failure,
    write_json,
    writing,
)


def reject(constant: str) -> None:
    raise AssertionError(f"{constant} is not JSON")


def test_numbers_that_are_not_finite_become_null_with_a_reason() -> None:
    record = {"name": "BaNaNa Infinity", "loss": float("nan"), "parts": [1.0, float("-inf")]}
    content = json.loads(strict_json(record), parse_constant=reject)
    assert content == {
        "name": "BaNaNa Infinity",
        "loss": None,
        "parts": [1.0, None],
        "reason": "loss is not a number; parts[1] is infinite",
    }


def test_a_reason_that_is_given_is_kept() -> None:
    content = json.loads(strict_json({"loss": float("inf"), "reason": "diverged"}))
    assert content == {"loss": None, "reason": "diverged"}


def test_a_file_is_replaced_as_a_whole(tmp_path: Path) -> None:
    target = tmp_path / "status.json"
    write_json(target, {"step": 1})
    write_json(target, {"step": 2})
    assert read_json(target) == {"step": 2}
    assert [path.name for path in tmp_path.iterdir()] == ["status.json"]


def test_a_failed_write_leaves_the_old_file_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = tmp_path / "status.json"
    write_bytes(target, b"old")

    def full(path: Path, content: bytes) -> None:
        path.write_bytes(content[:1])
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(durable, "write_and_sync", full)
    with pytest.raises(RunFailed, match="the disk is full"), writing(target):
        write_bytes(target, b"new")
    assert target.read_bytes() == b"old"
    assert [path.name for path in tmp_path.iterdir()] == ["status.json"]


def test_a_folder_replaces_an_older_one(tmp_path: Path) -> None:
    for content in ("one", "two"):
        source = tmp_path / ".tmp-new"
        source.mkdir()
        (source / "file").write_text(content)
        replace_folder(source, tmp_path / "final")
    assert (tmp_path / "final" / "file").read_text() == "two"
    assert [path.name for path in tmp_path.iterdir()] == ["final"]


def test_what_an_ended_process_left_is_removed(tmp_path: Path) -> None:
    (tmp_path / ".tmp-1-final").mkdir()
    (tmp_path / ".tmp-1-final" / "part").write_text("x")
    (tmp_path / ".tmp-1-status.json").write_text("x")
    (tmp_path / "status.json").write_text("{}")
    remove_temporary(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["status.json"]


def test_other_failures_are_told_in_the_words_of_the_system(tmp_path: Path) -> None:
    error = OSError(errno.EACCES, "Permission denied")
    assert "Permission denied" in str(write_failure(error, tmp_path / "x", 3 * 2**20))
    assert "3.0 MiB" in str(write_failure(error, tmp_path / "x", 3 * 2**20))


def test_it_is_light_to_import() -> None:
    code = "import sys, posattn.training.durable; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EROFS, errno.EFBIG])
def test_a_disk_that_refuses_is_told_to_the_user_with_the_folder(tmp_path: Path, code: int) -> None:
    told = f"cannot write {tmp_path}: .*run the same command again"
    with pytest.raises(RunFailed, match=told), on_disk(tmp_path):
        raise OSError(code, "refused")
    with pytest.raises(BrokenPipeError), on_disk(tmp_path):
        raise BrokenPipeError(errno.EPIPE, "closed")
