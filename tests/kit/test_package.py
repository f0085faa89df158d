"""`posattn new-mechanism` writes a package that works as it is: installed, checked, tested, trained."""

import json
import subprocess
import sys

import pytest

from posattn.errors import RecipeError
from posattn.kit import write_package
from posattn.kit.package import name_problems


def test_the_files_are_those_of_a_small_package(tmp_path):
    written = write_package("far_away", tmp_path / "new")
    names = sorted(path.relative_to(tmp_path / "new").as_posix() for path in written)
    assert names == [
        "README.md",
        "posattn_far_away/__init__.py",
        "posattn_far_away/far_away.py",
        "pyproject.toml",
        "recipes/far_away.yaml",
        "recipes/far_away_study.yaml",
        "tests/test_far_away.py",
    ]
    code = (tmp_path / "new/posattn_far_away/far_away.py").read_text()
    assert len(code.splitlines()) < 60
    assert max(map(len, code.splitlines())) <= 110
    assert "class FarAway(Mechanism[FarAwayConfig])" in code
    for path in written:
        assert "{{" not in path.read_text()


def test_the_folder_is_named_after_the_mechanism_unless_told(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_package("far_away")
    assert (tmp_path / "posattn-far-away/pyproject.toml").is_file()
    with pytest.raises(RecipeError, match="exists and is not an empty folder"):
        write_package("far_away")


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("Far", "lower-case"),
        ("1st", "lower-case"),
        ("far-away", "lower-case"),
        ("far__away", "lower-case"),
        ("../far", "lower-case"),
        ("f" * 41, "at most 40"),
        ("class", "something else in Python"),
        ("null", "YAML"),
        ("rope", "exists already"),
        ("json", "shadows Python's own module"),
        ("traits", "its class 'Traits' shadows the one from posattn.mechanisms"),
        ("mechanism", "its class 'Mechanism' shadows"),
    ],
)
def test_a_name_that_would_not_work_is_refused_before_anything_is_written(name, text, tmp_path):
    with pytest.raises(RecipeError, match=text):
        write_package(name, tmp_path / "new")
    assert not (tmp_path / "new").exists()


def test_a_package_that_is_installed_is_not_shadowed(tmp_path, monkeypatch):
    (tmp_path / "posattn_lean.py").write_text("")
    monkeypatch.syspath_prepend(str(tmp_path))
    assert name_problems("lean") == [
        "it shadows the Python package 'posattn_lean' that is installed"
    ]


def test_the_package_works_as_it_is_written(tmp_path, install, posattn_beside):
    """Installed with pip it is listed, valid in its recipe and study, and passes its own tests."""
    write_package("far_away", tmp_path / "new")
    site = install(tmp_path / "new")
    listed, valid, checked = posattn_beside(
        site,
        ["list", "mechanisms", "--json"],
        ["validate", tmp_path / "new/recipes/far_away_study.yaml"],
        ["check-mechanism", "far_away", "--set", "reach=2", "--json"],
    )
    row = next(row for row in json.loads(listed[1]) if row["name"] == "far_away")
    assert row["from"] == "posattn-far-away"
    assert row["options"]["reach"] == 4
    assert valid[0] == 0, valid[2]
    assert checked[0] == 0, checked[1]
    assert json.loads(checked[1])["passed"] is True
    code = f"import sys; sys.path.insert(0, {str(site)!r}); import pytest; sys.exit(pytest.main())"
    tests = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path / "new", capture_output=True, text=True
    )
    assert tests.returncode == 0, tests.stdout
