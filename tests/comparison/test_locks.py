"""The lock of a folder."""

from pathlib import Path

import pytest

from posattn.comparison.locks import locked
from posattn.errors import PosattnError, RunFailed


def take(folder: Path) -> None:
    with locked(folder, "this study"):
        (folder / "taken").write_text("")


def test_a_locked_folder_is_refused_to_others_and_free_afterwards(tmp_path: Path) -> None:
    folder = tmp_path / "study"
    with locked(folder, "this study"), pytest.raises(PosattnError, match="another process"):
        take(folder)
    assert not (folder / "taken").exists()
    take(folder)


def test_a_folder_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(RunFailed, match="file"), locked(tmp_path / "file" / "study", "this study"):
        pass
