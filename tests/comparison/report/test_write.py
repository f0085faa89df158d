"""The written report: self-contained, complete, honest about broken and missing things."""

import csv
import json
import re
from xml.etree import ElementTree

import pytest

from posattn.comparison.report import write_report
from posattn.errors import PosattnError, RecipeError
from posattn.figures.page import markdown_text
from tests.comparison.report.pages import dead_links, read_page
from tests.comparison.study_folders import CONTROL, EIGHT_ARMS, FakeArm, write_json, write_study


def flat(text):
    return re.sub(r"\s+", " ", text)


@pytest.fixture(scope="module")
def paths(tmp_path_factory):
    return write_report(write_study(tmp_path_factory.mktemp("study")))


@pytest.fixture(scope="module")
def html(paths):
    return paths.html.read_text(encoding="utf-8")


def test_the_page_fetches_nothing_from_elsewhere(html):
    page = read_page(html)
    assert not {"script", "link", "img", "iframe", "object"} & {tag for tag, _ in page.tags}
    assert "@import" not in html
    assert "url(" not in html
    assert not [link for link in page.links if ":" in link or link.startswith("/")]


def test_the_page_nests_well_its_ids_are_unique_and_every_link_leads_somewhere(paths, html):
    page = read_page(html)
    assert len(page.ids) == len(set(page.ids))
    assert dead_links(paths.html) == []


def test_sections_tables_figures_and_runs_have_lasting_ids_with_a_link_to_each(html):
    page = read_page(html)
    lasting = {
        *("differences", "table-differences", "figure-differences", "table-pairs", "table-scores"),
        *("table-runs", "run-rope-0", "run-none-2", "figure-curves", "table-length", "control"),
    }
    assert lasting <= set(page.ids)
    assert {f"#{name}" for name in lasting} <= set(page.links)


def test_names_of_arms_in_tables_lead_to_their_pages_and_pictures_to_their_files(html):
    links = read_page(html).links
    assert links.count("arms/rope.html") > 5
    assert {"figures/curves.svg", "figures/curves.csv"} <= set(links)
    assert "arms/none.html#run-none-2" in links


def test_figures_have_a_title_and_a_text_and_tables_have_headers(html):
    page = read_page(html)
    figures = [a for tag, a in page.tags if tag == "svg"]
    assert len(figures) == 10
    for attributes in figures:
        assert attributes["role"] == "img"
        assert set(attributes["aria-labelledby"].split()) <= set(page.ids)
    headers = [a for tag, a in page.tags if tag == "th"]
    assert {a["scope"] for a in headers} == {"row", "col"}


def test_the_answer_stands_before_everything_else(html):
    assert html.index("6 of 7 arms differ from the baseline learned") < html.index("<section")


def test_html_and_markdown_have_the_same_tables(paths, html):
    rows_of_html = html.count('<th scope="row"')
    markdown = paths.markdown.read_text(encoding="utf-8")
    lines = [line for line in markdown.splitlines() if line.startswith("|")]
    rules = [line for line in lines if re.fullmatch(r"\|( -{3}:? \|)+", line)]
    assert len(rules) == html.count("<table")
    assert len(lines) - 2 * len(rules) == rows_of_html


def test_every_row_of_a_markdown_table_has_its_columns(paths):
    widths = set()
    for line in paths.markdown.read_text(encoding="utf-8").splitlines():
        if not line.startswith("|"):
            widths = set()
            continue
        widths.add(len(re.findall(r"(?<!\\)\|", line)))
        assert len(widths) == 1, line


def test_failed_runs_refused_lengths_and_limits_are_in_both_texts(paths, html):
    for text in (html, paths.markdown.read_text(encoding="utf-8")):
        assert "2 of 3" in text
        assert "loss is not finite at step 301" in text
        assert "cannot run" in text
        assert "a table of 256 positions cannot take 512 tokens" in text
        assert "one learning rate (0.0015) for all arms" in text
        assert "cannot go below p = 0.25" in text
        assert "CC-BY 2.5" in text
        assert "posattn report" in text


def test_a_declared_difference_comes_first_in_the_control_table_and_is_no_alarm(html):
    table = html[html.index('id="control"') :]
    assert table.index("declared otherwise") < table.index("shared parameters start equal")
    assert "Control is broken" not in html


def test_a_broken_rule_puts_a_banner_before_the_answer(tmp_path):
    broken = {"rule": "batches equal", "held": False, "detail": "rope, seed 1, step 40"}
    paths = write_report(write_study(tmp_path, EIGHT_ARMS[:2], control=[*CONTROL, broken]))
    html = paths.html.read_text()
    assert html.index("Control is broken: 1 rule does not hold.") < html.index('class="answer"')
    assert "batches equal: rope, seed 1, step 40" in html
    markdown = paths.markdown.read_text()
    assert "> **Control is broken: 1 rule does not hold.**" in markdown


def test_figures_lie_beside_the_report_as_pictures_and_data(paths):
    names = {"differences", "curves", "curves_by_time", "length", "position"}
    assert {path.stem for path in paths.figures.glob("*.svg")} == names
    assert {path.stem for path in paths.figures.glob("*.csv")} == names
    for path in paths.figures.glob("*.svg"):
        ElementTree.parse(path)
    with (paths.figures / "length.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    learned = [row for row in rows if row["arm"] == "learned"]
    assert learned[-1]["mean"] == ""
    assert learned[-1]["refused"].startswith("a table of 256")


def test_table_plot_and_json_have_the_same_numbers(paths, html):
    results = json.loads(paths.results.read_text())
    rope = next(arm for arm in results["arms"] if arm["name"] == "rope")
    summary = rope["scores"]["validation_loss"]["summary"]
    assert f"{summary['mean']:.3f} ± {summary['sd']:.3f}" in html
    with (paths.figures / "length.csv").open(newline="") as file:
        row = next(row for row in csv.DictReader(file) if row["arm"] == "rope")
    assert float(row["mean"]) == rope["length"][0]["summary"]["mean"]
    assert float(row["sd"]) == rope["length"][0]["summary"]["sd"]


def test_names_that_look_like_markup_are_shown_as_they_are(tmp_path):
    arms = (EIGHT_ARMS[0], FakeArm("<b>|x|</b>", 1.4), FakeArm("BaNaNa", 1.5))
    out = write_study(tmp_path, arms, diverged=frozenset())
    plan = json.loads((out / "plan.json").read_text())
    for run in plan["runs"]:
        assert (out / run["folder"]).is_dir()
    paths = write_report(out)
    page = read_page(paths.html.read_text())
    assert "b" not in {tag for tag, a in page.tags if tag == "b" and a}
    assert "<b>|x|</b>" in "".join(page.text)
    assert "BaNaNa" in paths.results.read_text()


def test_a_study_that_is_still_running_has_a_report_that_says_so(tmp_path):
    missing = frozenset({("rope", 2), ("alibi", 1), ("alibi", 2)})
    paths = write_report(write_study(tmp_path, unstarted=missing, speed=False))
    html = paths.html.read_text()
    assert "Not complete yet: 20 of 24 runs are finished." in html
    assert "rope, seed 2 was not started" in html
    assert "there is no speed.json" in html
    assert not (paths.figures / "curves_by_time.svg").exists()


@pytest.mark.parametrize(
    ("arms", "seeds"), [(EIGHT_ARMS[:1], (0,)), (EIGHT_ARMS[:1], (0, 1)), (EIGHT_ARMS[:4], (3,))]
)
def test_one_seed_or_one_arm_is_enough_for_a_report(tmp_path, arms, seeds):
    paths = write_report(write_study(tmp_path, arms, seeds, diverged=frozenset()))
    read_page(paths.html.read_text())


def test_nothing_started_is_enough_for_a_report(tmp_path):
    missing = frozenset((arm.name, 0) for arm in EIGHT_ARMS)
    paths = write_report(write_study(tmp_path, seeds=(0,), unstarted=missing, speed=False))
    assert "No run is finished: nothing here is a result yet." in paths.html.read_text()


def test_twenty_arms_fit_in_one_report(tmp_path):
    arms = tuple(FakeArm(f"arm_number_{i}", 1.5 + 0.1 * i) for i in range(20))
    paths = write_report(write_study(tmp_path, arms, (0, 1), diverged=frozenset()))
    page = read_page(paths.html.read_text())
    assert len(page.ids) == len(set(page.ids))


def test_writing_again_gives_the_same_report(tmp_path):
    out = write_study(tmp_path, EIGHT_ARMS[:3])
    first = write_report(out).html.read_text()
    assert write_report(out).html.read_text() == first


def test_contracts_and_further_evaluations_have_their_place(tmp_path):
    out = write_study(tmp_path, EIGHT_ARMS[:2])
    plan = json.loads((out / "plan.json").read_text())
    plan["arms"][0]["contract"] = {"encoder": {"scale": "1 / sqrt(32)", "layers": 4}}
    plan["arms"][1]["contract"] = "no position at all\nplain decoder"
    write_json(out / "plan.json", plan)
    path = out / "runs/learned/seed-0/evaluations.json"
    write_json(path, json.loads(path.read_text()) | {"order": {"accuracy": 0.75}})
    html = write_report(out).html.read_text()
    assert "encoder: scale" in html
    assert "no position at all" in html
    assert "Other evaluations" in html
    assert "order.accuracy" in html


def test_a_folder_that_is_no_study_is_refused(tmp_path):
    with pytest.raises(RecipeError, match="is no study folder"):
        write_report(tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_a_report_that_cannot_be_written_says_where_and_why(tmp_path):
    out = write_study(tmp_path, EIGHT_ARMS[:1])
    (out / "figures").write_text("in the way")
    with pytest.raises(PosattnError, match="the report cannot be written to"):
        write_report(out)


def test_markdown_escapes_only_what_would_be_markup():
    assert markdown_text("rope_2 [1.2, 1.3], p < 0.05") == "rope_2 [1.2, 1.3], p < 0.05"
    assert markdown_text("a|b *c* `d` <e>") == r"a\|b \*c\* \`d\` \<e>"
    assert markdown_text("_private_ [x](y)") == r"\_private\_ [x\](y)"


def test_the_graphs_of_compiled_runs_stand_beside_them(tmp_path):
    study = write_study(tmp_path / "compiled", arms=EIGHT_ARMS[:2])
    plain = flat(write_report(study).markdown.read_text())
    assert "graphs compiled" not in plain
    status_file = study / "runs" / EIGHT_ARMS[0].name / "seed-0" / "status.json"
    write_json(status_file, {**json.loads(status_file.read_text()), "graphs": 37})
    written = write_report(study)
    lines = [line for line in written.markdown.read_text().splitlines() if "| 37 |" in line]
    assert [EIGHT_ARMS[0].name in line for line in lines] == [True]
    assert "graphs compiled" in written.markdown.read_text()
    runs = json.loads(written.results.read_text())["runs"]
    assert [run["graphs"] for run in runs].count(None) == len(runs) - 1
