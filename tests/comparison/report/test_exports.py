"""Tables for papers: LaTeX that balances and escapes, CSV with the numbers of results.json."""

import csv
import json
import re

import pytest

from posattn.comparison.report import write_report
from posattn.comparison.report.latex import Heading, escaped, latex_table
from tests.comparison.study_folders import EIGHT_ARMS, FakeArm, write_study

NAMES = ("scores", "differences", "length")
NASTY = FakeArm(r"a_b{c}$d%e&f#g\h~i^j", 1.4)


@pytest.fixture(scope="module")
def out(tmp_path_factory):
    arms = (*EIGHT_ARMS[:2], NASTY)
    folder = write_study(tmp_path_factory.mktemp("study"), arms)
    write_report(folder)
    return folder


def cells(text):
    """Return the rows of a table, after a check of everything that TeX would stumble over."""
    unescaped = re.sub(r"\\[\\{}$&#%_]", "", text.replace(r"\\", "\n"))
    body = "\n".join(line for line in unescaped.splitlines() if not line.startswith("%"))
    assert body.count("{") == body.count("}")
    assert body.count("$") % 2 == 0
    assert not set("#^_~%") & set(re.sub(r"\\label\{[^}]*\}", "", body))
    opened = re.findall(r"\\begin\{(\w+)\}", text)
    assert opened == ["table", "tabular"]
    assert re.findall(r"\\end\{(\w+)\}", text) == opened[::-1]
    rows = [line for line in text.splitlines() if line.endswith(r"\\")]
    return [re.split(r"(?<!\\)&", row.removesuffix(r"\\")) for row in rows]


def spanned(row):
    return sum(int((re.findall(r"\\multicolumn\{(\d+)\}", cell) or ["1"])[0]) for cell in row)


@pytest.mark.parametrize("name", NAMES)
def test_every_row_has_the_columns_that_are_declared(out, name):
    text = (out / f"tables/{name}.tex").read_text()
    (alignment,) = re.findall(r"\\begin\{tabular\}\{([lrc]+)\}", text)
    assert {spanned(row) for row in cells(text)} == {len(alignment)}
    for rule in ("toprule", "midrule", "bottomrule"):
        assert f"\\{rule}" in text
    assert f"\\label{{tab:quick-{name}}}" in text


def test_the_csv_has_the_unrounded_numbers_of_results(out):
    results = json.loads((out / "results.json").read_text())
    with (out / "tables/scores.csv").open(newline="") as file:
        rows = {row["arm"]: row for row in csv.DictReader(file)}
    for arm in results["arms"]:
        summary = arm["scores"]["validation_loss"]["summary"]
        assert float(rows[arm["name"]]["validation_loss_mean"]) == summary["mean"]
        assert int(rows[arm["name"]]["validation_loss_n"]) == summary["n"]
    assert rows["none"]["runs_planned"] == "3"
    assert rows["none"]["runs_finished"] == "2"
    with (out / "tables/differences.csv").open(newline="") as file:
        found = {row["arm"]: row for row in csv.DictReader(file)}
    contrast = next(c for c in results["contrasts"] if c["first"] == "none")
    assert float(found["none"]["low_95"]) == contrast["difference"]["low"]
    assert found["none"]["verdict"] == contrast["judgement"]["verdict"]
    with (out / "tables/length.csv").open(newline="") as file:
        refused = [row for row in csv.DictReader(file) if row["refused"]]
    assert [(row["arm"], row["length"], row["mean"]) for row in refused] == [("learned", "512", "")]


def test_the_report_links_the_files_of_its_tables(out):
    html = (out / "report.html").read_text()
    for name in NAMES:
        assert f'href="tables/{name}.tex"' in html
        assert f'href="tables/{name}.csv"' in html


def test_everything_that_tex_reads_as_a_command_is_escaped():
    assert escaped("50 % & a_b #1 {x} $") == r"50 \% \& a\_b \#1 \{x\} \$"
    assert escaped("\\") == r"\textbackslash{}"
    assert escaped("[1, 2]") == "{[}1, 2]"
    assert escaped("\u22121.5 \u00b1 0.2") == r"$-$1.5 $\pm$ 0.2"


def test_headings_over_several_columns_get_a_rule_of_their_own():
    headings = [Heading("arm", words=True), Heading("loss", ("mean", "sd")), Heading("n")]
    text = latex_table(headings, [["a", "1", "2", "3"]], "c", "tab:x")
    assert r"\cmidrule(lr){2-3}" in text
    assert " & \\multicolumn{2}{c}{loss} &  \\\\" in text
    assert "arm & mean & sd & n \\\\" in text
    assert "{lrrr}" in text
