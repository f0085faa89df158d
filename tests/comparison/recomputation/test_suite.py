"""The reports of a study with tasks against their runs: the tasks, and what is said over all."""

import json

import numpy as np
import pytest

from posattn.comparison.recomputation import recompute_suite
from posattn.comparison.report import write_report
from posattn.comparison.suite.report import write_suite_report
from tests.comparison.study_folders import write_json
from tests.comparison.suite_folders import write_suite

TASKS = {name: {"none": (0.1, 0.1), "rope": (0.5, None)} for name in ("offset", "reverse")}


@pytest.fixture
def suite(tmp_path):
    out = write_suite(tmp_path / "suite", TASKS)
    for path in out.glob("tasks/*/runs/*/*/evaluations.json"):
        with np.load(path.with_name("examples.npz")) as stored:
            sums = {
                name: float(np.sum(stored[name])) for name in ("loss_sum", "correct", "targets")
            }
        scores = {key: sums[name] / sums["targets"] for key, name in
                  (("loss", "loss_sum"), ("accuracy", "correct"))}  # fmt: skip
        write_json(path, {"validation": scores})
    for plan in out.glob("tasks/*/plan.json"):
        write_report(plan.parent)
    write_suite_report(out)
    return out


def test_a_suite_as_written_is_what_its_runs_give_and_every_change_has_its_path(suite):
    found = recompute_suite(suite)
    assert found.differences == ()
    assert found.runs == 8

    stored = json.loads((suite / "suite.json").read_text(encoding="utf-8"))
    write_json(suite / "suite.json", stored | {"answer": []})
    (suite / "tasks/reverse/figures/curves.csv").write_text("arm\n")
    found = "\n".join(recompute_suite(suite).differences)
    assert "suite.json: answer.0.text: the folder has nothing" in found
    assert "tasks/reverse/figures/curves.csv: line 1" in found

    (suite / "tasks/offset/results.json").unlink()
    found = "\n".join(recompute_suite(suite).differences)
    assert "tasks/offset/results.json: the folder has no such file" in found
    assert not (suite / "tasks/offset/results.json").exists(), "nothing is written"
