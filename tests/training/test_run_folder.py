import re
from pathlib import Path

import pytest

from posattn.errors import CheckpointError, RecipeError
from posattn.training.checkpoint import checkpoint_name
from posattn.training.run_folder import RunFolder, Status, check_out, check_run_name


@pytest.mark.parametrize(
    "name",
    ["CON", "con", "nul.txt", "COM1", "a:b", "a/b", "a b", "trailing.", "..", "", "é", "x" * 300],
)
def test_names_that_some_system_refuses_are_refused(name: str) -> None:
    with pytest.raises(RecipeError, match="cannot be used as a folder name"):
        check_run_name(name)


@pytest.mark.parametrize("name", ["quick", "rope-v2_0.1", "seed-0", "console", "x" * 100])
def test_portable_names_pass(name: str) -> None:
    assert check_run_name(name) == name


def test_names_that_a_run_makes_are_portable() -> None:
    folder = RunFolder(Path("run"))
    made = [
        folder.recipe, folder.environment, folder.status_file, folder.metrics,
        folder.parameters, folder.data, folder.checkpoints, folder.final,
    ]  # fmt: skip
    for name in [*(path.name for path in made), checkpoint_name(200)]:
        assert re.fullmatch(r"[A-Za-z0-9._-]+", name)


def test_status_survives_the_disk(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path / "run")
    folder.create()
    assert folder.read_status() is None
    status = Status("diverged", step=7, reason="the loss is not a number", notes=["a", "b"])
    folder.write_status(status)
    assert folder.read_status() == status


def test_a_damaged_status_says_what_to_do(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path)
    folder.status_file.write_text('{"state": "run')
    with pytest.raises(CheckpointError, match="delete this file"):
        folder.read_status()


def test_an_output_folder_that_is_or_lies_in_a_file_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("x")
    for out in (file, file / "run", file / "a" / "b"):
        with pytest.raises(RecipeError, match="is not a folder"):
            check_out(out)
    check_out(tmp_path)
    check_out(tmp_path / "new" / "run")


def test_an_output_folder_without_permission_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("os.access", lambda path, mode: False)
    with pytest.raises(RecipeError, match="does not let you write"):
        check_out(tmp_path / "new")
