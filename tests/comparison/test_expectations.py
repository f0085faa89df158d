"""Expected numbers: held, not held and loud, or not checked."""

import pytest

from posattn.comparison.commitments import Expectation
from posattn.comparison.control import raise_if_broken
from posattn.comparison.expectations import check_expectations
from posattn.comparison.run_evidence import RunEvidence
from posattn.errors import ControlError


def expected(**changes):
    known = {"arm": "base", "score": "validation_loss", "value": 2.4, "tolerance": 0.05}
    return Expectation(**(known | {"source": "Table 2"} | changes))


def run(arm, seed, loss, state="finished"):
    evaluations = {} if loss is None else {"validation": {"loss": loss, "accuracy": 0.5}}
    return RunEvidence(arm, seed, {}, status={"state": state}, evaluations=evaluations)


RUNS = [run("base", 0, 2.40), run("base", 1, 2.46), run("base", 2, None, "killed"), run("a", 0, 9)]


def test_a_number_within_its_tolerance_holds_with_the_evidence():
    (finding,) = check_expectations([expected()], RUNS)
    assert finding.held
    assert finding.detail == (
        "2.43, mean over 2 of 3 runs (seed 0: 2.4, seed 1: 2.46); expected 2.4 \u00b1 0.05 (Table 2)"
    )


def test_a_number_outside_is_a_broken_rule_that_ends_the_comparison_loudly():
    (finding,) = check_expectations([expected(value=2.1)], RUNS)
    assert finding.held is False
    assert finding.broken
    with pytest.raises(ControlError, match=r"base reproduces the validation_loss.*off by 0\.33"):
        raise_if_broken([finding])


def test_other_scores_are_read_from_their_evaluation():
    wanted = expected(score="validation_accuracy", value=0.5, tolerance=0)
    assert check_expectations([wanted], RUNS)[0].held


def test_without_a_finished_run_nothing_is_checked_and_nothing_broken():
    (finding,) = check_expectations([expected(arm="none")], RUNS)
    assert finding.held is None
    assert not finding.broken
    assert finding.to_json()["held"] is None
