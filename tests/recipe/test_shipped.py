"""Finding recipes by path and by shipped name."""

from pathlib import Path

import pytest

import posattn
from posattn.errors import RecipeError, UnknownName
from posattn.recipe import shipped
from posattn.recipe.shipped import find_recipe, shipped_names, shipped_recipes


@pytest.fixture
def shelf(tmp_path, monkeypatch):
    """A shelf of shipped files with names that collide."""
    for name in ("quick/rope", "quick/alibi", "full/rope", "full/bert_base", "studies/quick"):
        path = tmp_path / "shelf" / f"{name}.yaml"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("name: x\n")
    monkeypatch.setattr(shipped, "shipped_recipes", lambda: tmp_path / "shelf")
    return tmp_path / "shelf"


def test_the_recipes_of_a_checkout_are_found_from_any_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert (shipped_recipes() / "quick" / "rope.yaml").is_file()
    assert find_recipe("rope") == shipped_recipes() / "quick" / "rope.yaml"


def test_the_recipes_inside_an_installed_package_come_first(tmp_path, monkeypatch):
    (tmp_path / "site" / "posattn" / "_recipes").mkdir(parents=True)
    monkeypatch.setattr(posattn, "__file__", str(tmp_path / "site" / "posattn" / "__init__.py"))
    assert shipped_recipes() == (tmp_path / "site" / "posattn" / "_recipes").resolve()


def test_an_installation_without_recipes_says_so(tmp_path, monkeypatch):
    monkeypatch.setattr(posattn, "__file__", str(tmp_path / "site" / "posattn" / "__init__.py"))
    with pytest.raises(RecipeError, match="install posattn again"):
        shipped_recipes()


def test_a_name_is_a_stem_or_a_folder_and_a_stem(shelf):
    assert find_recipe("alibi") == find_recipe("quick/alibi") == shelf / "quick" / "alibi.yaml"
    assert find_recipe("quick/alibi.yaml".removesuffix(".yaml")) == shelf / "quick" / "alibi.yaml"


def test_an_ambiguous_name_is_refused_with_the_choices(shelf):
    with pytest.raises(RecipeError, match="'full/rope' or 'quick/rope'"):
        find_recipe("rope")
    assert find_recipe("full/rope") == shelf / "full" / "rope.yaml"


def test_studies_and_recipes_have_their_own_names(shelf):
    assert shipped_names("study") == {"quick": shelf / "studies" / "quick.yaml"}
    assert find_recipe("quick", kind="study") == shelf / "studies" / "quick.yaml"
    assert find_recipe("quick", kind=None) == shelf / "studies" / "quick.yaml"
    assert find_recipe("bert_base", kind=None) == shelf / "full" / "bert_base.yaml"
    with pytest.raises(
        UnknownName, match="'quick' is a study, not a recipe; run it with: posattn compare"
    ):
        find_recipe("quick")
    with pytest.raises(UnknownName, match="'alibi' is a recipe, not a study; train it with"):
        find_recipe("alibi", kind="study")


@pytest.mark.parametrize(
    ("reference", "hint"),
    [
        ("alibbi", "'quick/alibi'"),
        ("quick/alib", "'quick/alibi'"),
        ("here/alibi.yaml", "'quick/alibi'"),
    ],
)
def test_a_missing_recipe_names_the_nearest_shipped_ones(shelf, reference, hint):
    with pytest.raises(RecipeError) as caught:
        find_recipe(reference)
    assert f"did you mean {hint}" in str(caught.value)
    assert "full/bert_base" in str(caught.value)


def test_a_path_is_relative_to_the_given_folder_and_a_symlink_is_followed(tmp_path):
    (tmp_path / "a").mkdir()
    real = tmp_path / "a" / "mine.yaml"
    real.write_text("name: x\n")
    (tmp_path / "link.yaml").symlink_to(real)
    assert find_recipe("a/mine.yaml", folder=tmp_path) == real.resolve()
    assert find_recipe(tmp_path / "link.yaml") == real.resolve()


def test_a_folder_is_no_recipe(tmp_path):
    with pytest.raises(RecipeError, match="is a folder"):
        find_recipe(tmp_path)


def test_a_path_object_is_never_taken_for_a_name(shelf):
    with pytest.raises(RecipeError, match="no recipe"):
        find_recipe(Path("alibi"))
