"""Several studies on one page: what is the same, what differs, nothing pooled."""

import json
from pathlib import Path
from typing import Any

import pytest

from posattn.comparison.several import compare_studies, write_comparison
from posattn.comparison.several.schema import Compared
from posattn.errors import RecipeError
from tests.comparison.report.pages import read_page
from tests.comparison.study_folders import write_json
from tests.comparison.suite_folders import write_task

FIRST = {"none": (0.1, 0.12), "rope": (0.9, 0.92), "alibi": (0.5, 0.4)}
SECOND = {"none": (0.1, 0.11), "rope": (0.8, None), "t5": (0.7, 0.6)}


def write(folder: Path, accuracies: Any, recipes: dict[str, dict[str, Any]], **words: Any) -> Path:
    """Write a study whose plan has these recipes by arm."""
    write_task(folder, accuracies, **words)
    plan = json.loads((folder / "plan.json").read_text())
    for arm in plan["arms"]:
        arm["recipe"] = {"name": arm["name"], **recipes[arm["name"]]}
    write_json(folder / "plan.json", plan)
    return folder


def recipe(mechanism: str, steps: int = 10, rate: float = 0.001) -> dict[str, Any]:
    return {"encoder": {"mechanism": mechanism}, "train": {"steps": steps, "learning_rate": rate}}


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    root = tmp_path_factory.mktemp("studies")
    first = {name: recipe(name) for name in FIRST}
    second = {"none": recipe("none"), "rope": recipe("rope", rate=0.002), "t5": recipe("alibi")}
    return [write(root / "first", FIRST, first), write(root / "second", SECOND, second)]


@pytest.fixture(scope="module")
def found(folders: list[Path]) -> Compared:
    return compare_studies(folders)


def test_arms_are_matched_by_recipe_and_not_by_name_alone(found: Compared) -> None:
    arms = {arm.name: (arm.sameness, arm.differs, arm.also) for arm in found.arms}
    assert arms["none"] == ("same recipe", [], [])
    assert arms["rope"] == ("other recipe", ["train.learning_rate"], [])
    assert arms["alibi"] == ("only here", [], ["second: t5"])


def test_scores_stand_side_by_side_with_the_verdicts_of_their_own_study(found: Compared) -> None:
    first, second = found.studies
    assert [arm.values for arm in second.arms][1] == {0: 0.8, 1: None}
    assert second.runs_finished == 5
    rope = next(arm for arm in first.arms if arm.name == "rope")
    assert rope.difference is not None
    assert rope.difference.mean == pytest.approx(0.8)
    assert "Nothing is pooled" in found.limits[0]


def test_equal_conditions_are_said_to_be_equal_and_unequal_ones_are_listed(
    tmp_path: Path, folders: list[Path]
) -> None:
    longer = {name: recipe(name, steps=20) for name in FIRST}
    third = write(tmp_path / "third", FIRST, longer, seeds=[0, 1])
    (steps,) = [c for c in compare_studies([folders[0], third]).conditions if c.kind == "recipe"]
    assert (steps.path, steps.values) == ("train.steps", {"first": 10, "third": 20})
    same = write(tmp_path / "same", FIRST, {name: recipe(name) for name in FIRST})
    equal = compare_studies([folders[0], same])
    assert equal.conditions == []
    assert next(s for s in equal.answer if s.heading == "Shared conditions").text[:6] == "Equal:"


def test_the_page_its_json_and_tables_are_written(folders: list[Path], tmp_path: Path) -> None:
    paths = write_comparison(folders, tmp_path / "both")
    page = read_page(paths.html.read_text(encoding="utf-8"))
    assert len(page.ids) == len(set(page.ids))
    assert Compared.model_validate_json(paths.results.read_text()).studies[0].label == "first"
    assert (tmp_path / "both" / "tables" / "scores.csv").read_text().count("rope") == 4
    assert (paths.figures / "contrasts_validation_accuracy.svg").is_file()


def test_a_suite_gives_one_study_for_each_task(folders: list[Path], tmp_path: Path) -> None:
    write_task(tmp_path / "battery" / "tasks" / "copy", FIRST)
    found = compare_studies([folders[0], tmp_path / "battery"])
    assert [study.label for study in found.studies] == ["first", "battery/copy"]


def test_a_folder_given_twice_or_written_into_a_study_is_refused(
    folders: list[Path], tmp_path: Path
) -> None:
    with pytest.raises(RecipeError, match="given once"):
        compare_studies([folders[0], folders[0]])
    with pytest.raises(RecipeError, match="choose another --out"):
        write_comparison(folders, folders[0])
