"""Control before the runs: undeclared differences stop a study and are printed."""

from typing import Any

import pytest

from posattn.comparison.control import DeclaredFactors, Finding, check_arms, raise_if_broken
from posattn.errors import ControlError

MECHANISM = DeclaredFactors(("encoder.mechanism",), {})


def recipe(mechanism: str, **changes: Any) -> dict[str, Any]:
    train = {"steps": 10, "learning_rate": 1e-3, "seed": 0, **changes}
    return {"name": mechanism, "encoder": {"mechanism": {"name": mechanism}}, "train": train}


def test_arms_that_differ_in_the_declared_factor_pass_and_are_recorded() -> None:
    (finding,) = check_arms({"rope": recipe("rope"), "alibi": recipe("alibi")}, "rope", MECHANISM)
    assert finding.held
    assert "2 arms agree in every other value" in finding.detail
    assert "differ in encoder.mechanism (1 values)" in finding.detail


def test_an_undeclared_difference_stops_the_study_and_is_printed() -> None:
    arms = {"rope": recipe("rope"), "alibi": recipe("alibi", learning_rate=2e-3)}
    with pytest.raises(ControlError) as error:
        check_arms(arms, "rope", MECHANISM)
    assert "train.learning_rate: 'rope' has 0.001, 'alibi' has 0.002" in str(error.value)
    assert "declared are: encoder.mechanism" in str(error.value)
    assert error.value.exit_code == 2


def test_a_declared_difference_passes_and_comes_first() -> None:
    arms = {"rope": recipe("rope"), "alibi": recipe("alibi", learning_rate=2e-3)}
    factors = DeclaredFactors(("encoder.mechanism",), {"train.learning_rate": "tuned per arm"})
    first, second = check_arms(arms, "rope", factors)
    assert not first.held
    assert first.expected
    assert not first.broken
    assert "tuned per arm" in first.detail
    assert "alibi" in first.detail
    assert second.held


def test_a_declared_difference_that_no_arm_uses_is_said() -> None:
    arms = {"rope": recipe("rope"), "alibi": recipe("alibi")}
    first, _ = check_arms(arms, "rope", DeclaredFactors(("encoder.mechanism",), {"train": "x"}))
    assert first.held
    assert "all arms agree" in first.detail


def test_names_and_seeds_do_not_count_as_differences() -> None:
    check_arms({"a": recipe("rope"), "b": recipe("rope", seed=3)}, "a", DeclaredFactors((), {}))


def test_arms_equal_to_the_baseline_are_named() -> None:
    (finding,) = check_arms({"a": recipe("rope"), "b": recipe("rope")}, "a", MECHANISM)
    assert "equal to the baseline in all but name: b" in finding.detail


def test_a_broken_rule_is_loud_and_an_expected_one_is_not() -> None:
    raise_if_broken([Finding("a", True, ""), Finding("b", False, "declared", expected=True)])
    with pytest.raises(ControlError, match="same batches: arms rope and alibi, seed 1, step 20"):
        raise_if_broken([Finding("same batches", False, "arms rope and alibi, seed 1, step 20")])


def test_a_compensation_passes_with_its_reason_and_is_called_so() -> None:
    arms = {"rope": recipe("rope"), "alibi": recipe("alibi", learning_rate=2e-3)}
    why = {"train.learning_rate": "tuned on the same grid"}
    first, _ = check_arms(arms, "rope", DeclaredFactors(("encoder.mechanism",), {}, why))
    assert first.expected
    assert first.detail == "differs in alibi; compensation: tuned on the same grid"
