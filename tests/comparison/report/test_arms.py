"""The pages of the arms: every run, the recipe, links both ways, figures with their data."""

import csv
import json
from xml.etree import ElementTree

import pytest

from posattn.comparison.report import write_report
from posattn.comparison.report.arms.narrow import narrowed
from posattn.comparison.report.links import slug
from posattn.figures.blocks import Section, Table, numbers, words
from tests.comparison.report.pages import dead_links, read_page
from tests.comparison.study_folders import EIGHT_ARMS, FakeArm, write_json, write_study

THREE = (EIGHT_ARMS[0], EIGHT_ARMS[1], EIGHT_ARMS[3])


@pytest.fixture(scope="module")
def out(tmp_path_factory):
    folder = write_study(tmp_path_factory.mktemp("study"), THREE)
    plan = json.loads((folder / "plan.json").read_text())
    plan["arms"][2]["recipe"] = {"encoder": {"mechanism": {"name": "rope", "base": 10000}}}
    plan["arms"][0]["recipe"] = {"encoder": {"mechanism": {"name": "learned"}}}
    plan["arms"][2]["contract"] = {"encoder": {"scale": "1 / sqrt(32)"}}
    write_json(folder / "plan.json", plan)
    write_report(folder)
    return folder


def text(path):
    return "".join(read_page(path.read_text(encoding="utf-8")).text)


def test_every_arm_has_a_page_whose_links_all_lead_somewhere(out):
    pages = sorted((out / "arms").glob("*.html"))
    assert [page.stem for page in pages] == ["learned", "none", "rope"]
    for page in pages:
        assert dead_links(page) == []
        found = read_page(page.read_text())
        assert len(found.ids) == len(set(found.ids))
        assert "../report.html" in found.links


def test_a_page_needs_nothing_from_elsewhere(out):
    html = (out / "arms/rope.html").read_text()
    page = read_page(html)
    assert not {"script", "link", "img", "iframe", "object"} & {tag for tag, _ in page.tags}
    assert not [link for link in page.links if ":" in link or link.startswith("/")]
    assert "url(" not in html
    assert "@import" not in html


def test_failed_runs_stay_with_their_reason(out):
    shown = text(out / "arms/none.html")
    assert "2 of 3 runs are finished" in shown
    assert "loss is not finite at step 301" in shown
    assert "seed 2, diverged" in shown
    assert 'id="run-none-2"' in (out / "arms/none.html").read_text()


def test_the_recipe_is_whole_and_what_differs_from_the_baseline_is_named(out):
    shown = text(out / "arms/rope.html")
    assert "base: 10000" in shown
    assert "encoder.mechanism.base" in shown
    assert "1 / sqrt(32)" in shown
    stored = text(out / "arms/none.html")
    assert "learning_rate: 0.0015" in stored, "plan.json has no recipe here: the run's is shown"


def test_contrasts_are_seen_from_the_side_of_the_arm(out):
    results = json.loads((out / "results.json").read_text())
    contrast = next(
        c
        for c in results["contrasts"]
        if c["first"] == "rope" and c["metric"] == "validation_loss" and c["family"] == "baseline"
    )
    mean = contrast["difference"]["mean"]
    assert mean < 0
    assert f"\u2212{-mean:.3f}" in text(out / "arms/rope.html")
    baseline = text(out / "arms/learned.html")
    assert f"+{-mean:.3f}" in baseline
    low, high = contrast["difference"]["low"], contrast["difference"]["high"]
    assert f"[+{-high:.3f}, +{-low:.3f}]" in baseline


def test_the_curves_of_all_seeds_are_drawn_and_their_data_lie_beside_them(out):
    folder = out / "arms/figures"
    pictures = {path.stem for path in folder.glob("*.svg")}
    assert pictures == {path.stem for path in folder.glob("*.csv")}
    parts = ("curves", "length", "position")
    assert pictures == {f"{arm.name}-{part}" for arm in THREE for part in parts}
    for path in folder.glob("*.svg"):
        ElementTree.parse(path)
    with (folder / "none-curves.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert {row["seed"] for row in rows} == {"0", "1", "2"}
    assert rows[-1]["loss"] == "", "the diverged run's last loss is not a number"
    links = read_page((out / "arms/none.html").read_text()).links
    assert {"figures/none-curves.svg", "figures/none-curves.csv"} <= set(links)


def test_an_arm_of_which_nothing_was_started_has_a_page(tmp_path):
    missing = frozenset((arm.name, 0) for arm in THREE)
    out = write_study(tmp_path, THREE, (0,), unstarted=missing, speed=False, diverged=frozenset())
    write_report(out)
    shown = text(out / "arms/rope.html")
    assert "No resolved recipe is stored" in shown
    assert dead_links(out / "arms/rope.html") == []


def test_a_name_that_is_no_file_name_gets_a_page_all_the_same(tmp_path):
    arms = (EIGHT_ARMS[0], FakeArm("<b>|x|</b>", 1.4))
    out = write_study(tmp_path, arms, (0, 1), diverged=frozenset())
    write_report(out)
    assert (out / f"arms/{slug('<b>|x|</b>')}.html").is_file()
    assert dead_links(out / "report.html") == []


def test_rows_of_other_arms_are_left_out_and_a_single_row_is_turned():
    columns = [*words("arm"), *numbers("a", "b", "c")]
    rows = [["x", "1", "2", "\u2013"], ["y (baseline)", "3", "4", "\u2013"], ["z", "5", "6", "7"]]
    section = narrowed(Section("s", "S", [Table("t", columns, rows)]), "x", "y")
    assert section is not None
    (table,) = section.blocks
    assert isinstance(table, Table)
    assert [column.title for column in table.columns] == ["", "x", "y (baseline)"]
    assert table.rows == [["a", "1", "3"], ["b", "2", "4"]]


def test_several_rows_keep_their_marks_links_and_ids():
    rows = [["y", "0", "p"], ["x", "1", "q"], ["x", "2", "r"]]
    marks = {"marked": {2: "bad"}, "row_ids": {1: "run-x-1"}, "links": {(2, 2): "a", (0, 1): "b"}}
    table = Table("t", words("arm", "seed", "what"), rows, **marks)
    section = narrowed(Section("s", "S", [table]), "x", "y")
    assert section is not None
    (found,) = section.blocks
    assert isinstance(found, Table)
    assert found.rows == [["1", "q"], ["2", "r"]]
    assert found.marked == {1: "bad"}
    assert found.row_ids == {0: "run-x-1"}
    assert found.links == {(1, 1): "../a"}
