"""The conformance suite finds faults: every broken mechanism fails the check made for it."""

from typing import Any

import pytest

from posattn.mechanisms import Mechanism, registry
from posattn.testing import CheckResult, check_mechanism, mechanism_checks

from .broken_mechanisms import FAULTS, NAME, Sound


def test_a_sound_mechanism_passes_with_a_result_for_each_check(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(registry._entries, NAME, Sound)
    results = check_mechanism(NAME, {"slope": 0.25})
    assert [result.name for result in results] == [check.name for check in mechanism_checks(NAME)]
    assert all(result.passed for result in results)


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.__name__)
def test_the_fault_is_found_by_its_check(
    fault: type[Mechanism[Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(registry._entries, NAME, fault)
    checks = {check.name: check for check in mechanism_checks(NAME)}
    check, text = FAULTS[fault]
    with pytest.raises((AssertionError, RuntimeError, IndexError), match=text):
        checks[check]()


def test_one_error_lists_every_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    broken = next(fault for fault in FAULTS if fault.__name__ == "RotationForgotten")
    monkeypatch.setitem(registry._entries, NAME, broken)
    with pytest.raises(AssertionError) as failure:
        check_mechanism(NAME)
    text = str(failure.value)
    assert text.startswith("mechanism 'broken' fails ")
    for check in ("active_hooks_are_the_declared_ones", "position_reaches_the_output"):
        assert f"\n  {check}: " in text


def test_checks_follow_the_traits() -> None:
    def names(name: str, **options: Any) -> set[str]:
        return {check.name for check in mechanism_checks(name, options)}

    assert "the_encoder_is_permutation_equivariant" in names("none")
    assert "score_mod_equals_materialize" not in names("rope")
    assert "score_mod_equals_materialize" in names("alibi")
    assert "reversal_mirrors_the_output" in names("alibi")
    assert "reversal_changes_the_output" in names("alibi", variant="offset")
    assert "later_tokens_are_invisible" in names("transformer_xl", bidirectional=False)


def test_every_check_says_what_it_promises() -> None:
    for check in mechanism_checks("alibi"):
        assert check.about.endswith(".")
        assert str(check) == check.name


def test_the_size_can_be_chosen() -> None:
    results = check_mechanism("rope", {"fraction": 0.25}, hidden_size=48, num_heads=3)
    assert all(isinstance(result, CheckResult) for result in results)
