"""Runs that failed, were killed or diverged stay in every table of a report, and in its counts."""

import json

import pytest

from posattn.comparison.report.figures import report_figures
from posattn.comparison.report.sections import study_sections
from posattn.comparison.results import collect
from posattn.figures.blocks import Table
from tests.comparison.study_folders import EIGHT_ARMS, write_study

LOST = {("rope", 0): "killed", ("rope", 1): "failed", ("rope", 2): "diverged"}
ARMS = tuple(arm for arm in EIGHT_ARMS if arm.name in ("learned", "none", "rope"))


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    out = tmp_path_factory.mktemp("lost")
    write_study(out, ARMS, diverged=frozenset(LOST) | {("none", 2)})
    for (arm, seed), state in LOST.items():
        path = out / f"runs/{arm}/seed-{seed}/status.json"
        status = json.loads(path.read_text(encoding="utf-8"))
        path.write_text(json.dumps(status | {"state": state, "reason": f"it {state}"}), "utf-8")
    return collect(out)


def tables(found):
    sections = study_sections(found, report_figures(found), "DIR")
    return [block for section in sections for block in section.blocks if isinstance(block, Table)]


def test_every_table_over_arms_has_the_arm_of_which_no_run_finished(found):
    over_arms = [
        table
        for table in tables(found)
        if table.columns[0].title == "arm" and {"learned", "none"} <= {r[0] for r in table.rows}
    ]
    assert len(over_arms) >= 5
    without = [table.caption for table in over_arms if not any(r[0] == "rope" for r in table.rows)]
    assert without == []


def test_every_run_has_a_row_with_its_state_and_reason(found):
    (runs,) = (table for table in tables(found) if table.name == "runs")
    rows = {(row[0], int(row[1])): row for row in runs.rows}
    assert len(rows) == 9
    for key, state in LOST.items():
        assert rows[key][2] == state
        assert f"it {state}" in rows[key]


def test_counts_are_of_what_was_planned_and_n_of_what_finished(found):
    arms = {arm.name: arm for arm in found.arms}
    assert (arms["rope"].runs_planned, arms["rope"].runs_finished) == (3, 0)
    assert (arms["none"].runs_planned, arms["none"].runs_finished) == (3, 2)
    contrast = {c.first: c for c in found.family("baseline")}
    assert contrast["rope"].difference.n == 0
    assert contrast["rope"].judgement.verdict == "not tested"
    assert contrast["none"].difference.n == 2
    said = " ".join(s.text + " ".join(s.items) for s in found.answer)
    assert all(state in said for state in LOST.values())
