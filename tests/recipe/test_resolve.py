"""`extends`, overrides and relative paths (Y-7)."""

import os

import pytest

from posattn.errors import RecipeError
from posattn.recipe.reader import Origin
from posattn.recipe.resolve import resolve_recipe


def write(folder, **files):
    for name, text in files.items():
        path = folder / f"{name}.yaml"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")


def test_a_recipe_extends_another_relative_to_its_own_file(tmp_path, monkeypatch):
    write(tmp_path, base="train: {steps: 1, seed: 2}\ndescription: old\n")
    write(tmp_path / "sub", mine="extends: ../base.yaml\ntrain: {steps: 3}\n")
    monkeypatch.chdir("/")
    document = resolve_recipe(tmp_path / "sub" / "mine.yaml")
    assert document.data == {"name": "mine", "train": {"steps": 3, "seed": 2}}
    assert document.origin(("train", "steps")) == Origin(str(tmp_path / "sub/mine.yaml"), 2, 9)
    assert document.origin(("train", "seed")).source == str(tmp_path / "base.yaml")


def test_a_recipe_extends_a_shipped_one_by_name(tmp_path):
    write(tmp_path, mine="extends: quick/rope\n")
    document = resolve_recipe(tmp_path / "mine.yaml")
    assert document.data["name"] == "mine"
    assert document.data["encoder"]["mechanism"]["name"] == "rope"


def test_extends_may_go_on_for_several_files(tmp_path):
    write(
        tmp_path,
        a="x: 1\ny: 1\nz: 1\n",
        b="extends: a.yaml\ny: 2\nz: 2\n",
        c="extends: b.yaml\nz: 3\n",
    )
    assert resolve_recipe(tmp_path / "c.yaml").data == {"name": "c", "x": 1, "y": 2, "z": 3}


def test_a_circle_is_refused_with_the_chain(tmp_path):
    write(tmp_path, a="extends: b.yaml\n", b="extends: c.yaml\n", c="extends: b.yaml\n")
    with pytest.raises(RecipeError, match=r"circle: .*b\.yaml -> .*c\.yaml -> .*b\.yaml") as caught:
        resolve_recipe(tmp_path / "a.yaml")
    assert "a.yaml ->" not in str(caught.value)


def test_a_recipe_that_extends_itself_is_refused(tmp_path):
    write(tmp_path, a="extends: a.yaml\n")
    with pytest.raises(RecipeError, match="circle"):
        resolve_recipe(tmp_path / "a.yaml")


@pytest.mark.parametrize("text", ["extends: [a, b]\n", "extends: null\n", "extends: {x: 1}\n"])
def test_extends_names_one_recipe(tmp_path, text):
    write(tmp_path, mine=text)
    with pytest.raises(RecipeError, match=r"mine\.yaml:1: 'extends' names one recipe"):
        resolve_recipe(tmp_path / "mine.yaml")


def test_a_missing_base_is_refused_with_the_line_that_names_it(tmp_path):
    write(tmp_path, mine="name: x\nextends: ropee\n")
    with pytest.raises(RecipeError, match=r"mine\.yaml:2: extends: .*did you mean 'quick/rope'"):
        resolve_recipe(tmp_path / "mine.yaml")


def test_overrides_come_last_and_in_order(tmp_path):
    write(tmp_path, mine="train: {steps: 1}\n")
    document = resolve_recipe(tmp_path / "mine.yaml", ["train.steps=2", "train.steps=3"])
    assert document.data["train"]["steps"] == 3
    assert str(document.origin(("train", "steps"))) == "--set train.steps=3"
    by_mapping = resolve_recipe(tmp_path / "mine.yaml", {"train.steps": 4})
    assert by_mapping.data["train"]["steps"] == 4


@pytest.mark.parametrize("folder", ["a/b", "with space/ünï çödé", "."])
def test_paths_are_relative_to_the_recipe_that_wrote_them(tmp_path, monkeypatch, folder):
    home = tmp_path / folder / "b"
    text = "data:\n  corpus: {name: files, paths: [../d/t.txt, '*.txt']}\n"
    write(home, r=text + "  tokenizer: {name: file, path: tok/tokenizer.json}\n")
    write(tmp_path / "elsewhere", child=f"extends: '{home / 'r.yaml'}'\n")
    (tmp_path / "link.yaml").symlink_to(home / "r.yaml")
    expected = [os.path.normpath(home / "../d/t.txt"), str(home.resolve() / "*.txt")]
    for here in (tmp_path, home, tmp_path / "elsewhere"):
        monkeypatch.chdir(here)
        for recipe in (
            home / "r.yaml",
            tmp_path / "link.yaml",
            tmp_path / "elsewhere" / "child.yaml",
        ):
            data = resolve_recipe(recipe).data["data"]
            assert data["corpus"]["paths"] == expected
            assert data["tokenizer"]["path"] == str(home.resolve() / "tok" / "tokenizer.json")


def test_absolute_paths_addresses_and_other_text_stay(tmp_path):
    text = "data: {corpus: {paths: [/x/y.txt, 'hf://d/t.txt'], note: a/b}, layout: packed}\npath: a/b\n"
    write(tmp_path, mine=text)
    data = resolve_recipe(tmp_path / "mine.yaml").data
    assert data["data"]["corpus"]["paths"] == ["/x/y.txt", "hf://d/t.txt"]
    assert data["data"]["corpus"]["note"] == "a/b"
    assert data["path"] == "a/b"


def test_a_path_on_the_command_line_is_relative_to_the_current_folder(tmp_path, monkeypatch):
    write(tmp_path / "r", mine="data: {corpus: {name: files, paths: [t.txt]}}\n")
    monkeypatch.chdir(tmp_path)
    document = resolve_recipe(tmp_path / "r" / "mine.yaml", ["data.corpus.paths=[u.txt]"])
    assert document.data["data"]["corpus"]["paths"] == [str(tmp_path / "u.txt")]


@pytest.mark.parametrize(
    ("dataset", "is_path"),
    [("./texts", True), ("../texts", True), ("owner/name", False), ("name", False)],
)
def test_a_dataset_is_a_path_only_if_written_as_one(tmp_path, dataset, is_path):
    write(tmp_path, mine=f"data: {{corpus: {{name: hub, dataset: {dataset}}}}}\n")
    found = resolve_recipe(tmp_path / "mine.yaml").data["data"]["corpus"]["dataset"]
    assert found == (os.path.normpath(tmp_path / dataset) if is_path else dataset)
