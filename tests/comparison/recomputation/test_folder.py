"""A report against its runs: equal as written, and every change of a file found with its path."""

import json
import shutil

import pytest

from posattn.comparison.recomputation import recompute
from posattn.comparison.report import write_report
from posattn.errors import RecipeError
from tests.comparison.study_folders import EIGHT_ARMS, write_json, write_study

RUN = "runs/none/seed-0"


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    out = tmp_path_factory.mktemp("recomputation") / "study"
    write_study(out, EIGHT_ARMS[:2], (0, 1), diverged=frozenset({("none", 1)}))
    write_report(out)
    return out


@pytest.fixture
def folder(written, tmp_path):
    return shutil.copytree(written, tmp_path / "study")


def test_a_report_as_written_is_what_its_runs_give_and_nothing_is_touched(written):
    before = {path: path.stat().st_mtime_ns for path in written.rglob("*")}
    found = recompute(written)
    assert found.differences == ()
    assert (found.runs, found.files > 8) == (4, True)
    assert {path: path.stat().st_mtime_ns for path in written.rglob("*")} == before


def test_a_changed_result_is_found_by_its_path(folder):
    results = json.loads((folder / "results.json").read_text(encoding="utf-8"))
    results["arms"][0]["scores"]["validation_loss"]["summary"]["mean"] = 1.0
    write_json(folder / "results.json", results)
    (text,) = recompute(folder).differences
    assert text.startswith(
        "results.json: arms.0.scores.validation_loss.summary.mean: the folder has 1"
    )


def test_changed_missing_and_left_over_figure_data_are_found(folder):
    path = folder / "figures/differences.csv"
    path.write_text(path.read_text().replace("none,1,", "none,2,"))
    (folder / "figures/length.csv").unlink()
    (folder / "figures/old.csv").write_text("x\n")
    found = "\n".join(recompute(folder).differences)
    assert "figures/differences.csv: line 2: the folder has" in found
    assert "figures/length.csv: the folder has no such file" in found
    assert "figures/old.csv: these runs give no such file" in found


def test_a_run_that_contradicts_itself_is_found_with_all_that_follows(folder):
    path = folder / RUN / "evaluations.json"
    stored = json.loads(path.read_text())["validation"]
    write_json(path, {"validation": stored | {"loss": stored["loss"] + 0.5}})
    found = recompute(folder).differences
    assert found[0].startswith(f"{RUN}/evaluations.json: validation.loss is ")
    assert any(text.startswith("results.json: runs.2.scores.validation_loss") for text in found)


def test_a_recipe_that_does_not_have_its_digest_is_found(folder):
    plan = json.loads((folder / "plan.json").read_text())
    plan["arms"][0]["recipe"] = {"name": "learned", "train": {"steps": 1}}
    write_json(folder / "plan.json", plan)
    assert (
        "plan.json: the recipe of learned does not have the digest stored with it"
        in recompute(folder).differences
    )


def test_a_folder_without_a_report_lists_what_is_missing(folder):
    (folder / "results.json").unlink()
    found = recompute(folder).differences
    assert found == ("results.json: the folder has no such file; write the report again",)


def test_a_folder_that_is_no_study_is_refused(tmp_path):
    with pytest.raises(RecipeError, match="is no study folder"):
        recompute(tmp_path)
