import errno
import json
import multiprocessing
import os
from pathlib import Path

import pytest

from posattn.cache import build_once, cache_folder, value_digest
from posattn.errors import DataError


def fill(folder: Path) -> None:
    folder.joinpath("content").write_text("whole")


def problem(folder: Path) -> str | None:
    good = folder.joinpath("content").read_text() == "whole"
    return None if good else "the content changed"


def fill_and_note(folder: Path) -> None:
    with folder.parent.joinpath("builders").open("a") as notes:
        notes.write(f"{os.getpid()}\n")
    fill(folder)


def build_in_process(target: str) -> None:
    build_once(Path(target), fill_and_note, problem)


def test_the_environment_variable_chooses_the_folder(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("POSATTN_CACHE", str(tmp_path / "here"))
    assert cache_folder() == tmp_path / "here"
    monkeypatch.delenv("POSATTN_CACHE")
    assert cache_folder().name == "posattn"


def test_a_folder_is_built_once(tmp_path: Path) -> None:
    target = tmp_path / "a" / "target"
    for _ in range(3):
        assert build_once(target, fill_and_note, problem) == target
    assert len((tmp_path / "a" / "builders").read_text().split()) == 1


def test_a_damaged_folder_is_rebuilt_with_a_notice(tmp_path: Path) -> None:
    target = build_once(tmp_path / "target", fill, problem)
    target.joinpath("content").write_text("half")
    with pytest.warns(UserWarning, match=r"rebuilt: the content changed"):
        build_once(target, fill, problem)
    assert problem(target) is None


def test_an_interrupted_build_leaves_nothing_and_what_a_killed_one_left_is_removed(
    tmp_path: Path,
) -> None:
    target = tmp_path / "target"

    def interrupted(folder: Path) -> None:
        fill(folder)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        build_once(target, interrupted, problem)
    left = tmp_path / ".building-target-dead"
    left.mkdir()
    assert not target.exists()
    build_once(target, fill, problem)
    assert {path.name for path in tmp_path.iterdir()} - {"posattn-cache"} <= {
        "target",
        "target.lock",
    }


def test_two_processes_at_once_build_once_and_both_get_the_result(tmp_path: Path) -> None:
    target = tmp_path / "target"
    context = multiprocessing.get_context("fork")
    runs = [context.Process(target=build_in_process, args=(str(target),)) for _ in range(4)]
    for run in runs:
        run.start()
    for run in runs:
        run.join(30)
    assert [run.exitcode for run in runs] == [0] * 4
    assert len((tmp_path / "builders").read_text().split()) == 1
    assert problem(target) is None


def test_a_full_disk_is_one_clear_message(tmp_path: Path) -> None:
    def full(folder: Path) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(folder / "content"))

    with pytest.raises(DataError, match=r"target: No space left.*POSATTN_CACHE"):
        build_once(tmp_path / "target", full, problem)
    assert not list(tmp_path.glob(".building*"))


def test_a_source_that_cannot_be_read_is_not_blamed_on_the_cache(tmp_path: Path) -> None:
    def unreadable(folder: Path) -> None:
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), "/elsewhere/book.txt")

    with pytest.raises(DataError, match=r"cannot read .*book\.txt: Permission denied"):
        build_once(tmp_path / "target", unreadable, problem)


def test_the_digest_of_a_value_does_not_depend_on_the_order_of_keys() -> None:
    assert value_digest({"a": 1, "b": [2]}) == value_digest(json.loads('{"b": [2], "a": 1}'))
    assert value_digest({"a": 1}) != value_digest({"a": 2})
