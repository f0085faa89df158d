"""The conformance suite of backends finds what faulty backends do."""

from dataclasses import replace
from typing import ClassVar

import pytest
import torch
from typing_extensions import override

from posattn.backends import AttentionBackend, AttentionCall, EagerBackend, registry
from posattn.bias import DenseBias, Visibility
from posattn.shapes import QueryHeads
from posattn.testing import backend_checks, check_backend

NAME = "broken"
EAGER = EagerBackend()


class Sound(AttentionBackend):
    name: ClassVar[str] = NAME

    @override
    def refusals(self, call: AttentionCall) -> list[str]:
        return EAGER.refusals(call)

    @override
    def run(self, call: AttentionCall) -> QueryHeads:
        return EAGER.run(call)


class DropsTheBias(Sound):
    @override
    def run(self, call: AttentionCall) -> QueryHeads:
        return EAGER.run(replace(call, bias=None))


class DropsTheVisibility(Sound):
    @override
    def run(self, call: AttentionCall) -> QueryHeads:
        return EAGER.run(replace(call, visibility=Visibility(())))


class DropsTheRelativeValues(Sound):
    @override
    def run(self, call: AttentionCall) -> QueryHeads:
        return EAGER.run(replace(call, relative_values=None))


class DropsTheDropout(Sound):
    @override
    def run(self, call: AttentionCall) -> QueryHeads:
        return EAGER.run(replace(call, dropout=0.0))


class ForgetsToScaleDropout(Sound):
    @override
    def run(self, call: AttentionCall) -> QueryHeads:
        return EAGER.run(call) * (1 - call.dropout)


class DropsInEvaluation(Sound):
    @override
    def run(self, call: AttentionCall) -> QueryHeads:
        return EAGER.run(replace(call, dropout=0.5))


class NoNumbersForBlindQueries(Sound):
    @override
    def run(self, call: AttentionCall) -> QueryHeads:
        logits = (call.query * call.scale) @ call.key.mT
        if call.bias is not None:
            logits = logits + call.bias.materialize().to(logits.dtype)
        if call.visibility.pairs is not None:
            logits = logits.masked_fill(~call.visibility.pairs, -torch.inf)
        return torch.softmax(logits, -1) @ call.value


class MeansForBlindQueries(Sound):
    @override
    def run(self, call: AttentionCall) -> QueryHeads:
        logits = (call.query * call.scale) @ call.key.mT
        if call.bias is not None:
            logits = logits + call.bias.materialize().to(logits.dtype)
        if call.visibility.pairs is not None:
            lowest = torch.finfo(logits.dtype).min
            logits = logits.masked_fill(~call.visibility.pairs, lowest)
        return torch.softmax(logits, -1) @ call.value


class ScalesTooLate(Sound):
    @override
    def run(self, call: AttentionCall) -> QueryHeads:
        logits = (call.query @ call.key.mT) * call.scale
        if call.bias is not None:
            logits = logits + call.bias.materialize().to(logits.dtype)
        return torch.softmax(logits, -1) @ call.value


class OtherDtype(Sound):
    @override
    def run(self, call: AttentionCall) -> QueryHeads:
        return EAGER.run(call).float()


class CausalAtTheUpperLeft(Sound):
    @override
    def run(self, call: AttentionCall) -> QueryHeads:
        same = call.query.shape[2] == call.key.shape[2]
        return EAGER.run(call if same else replace(call, key=call.key.flip(2)))


class NoGradientForTheBias(Sound):
    @override
    def run(self, call: AttentionCall) -> QueryHeads:
        if call.bias is None:
            return EAGER.run(call)
        fixed = DenseBias("fixed", call.bias.materialize().detach())
        nothing = 0.0 * call.bias.materialize().sum()  # autograd sees the bias, and learns nothing
        return EAGER.run(replace(call, bias=fixed)) + nothing


class RefusesWithoutReason(Sound):
    @override
    def refusals(self, call: AttentionCall) -> list[str]:
        return [" "] if call.relative_values is not None else []


class RunsWhatItRefuses(Sound):
    @override
    def refusals(self, call: AttentionCall) -> list[str]:
        return ["it has no relative values"] if call.relative_values is not None else []

    @override
    def attend(self, call: AttentionCall) -> QueryHeads:
        return EAGER.run(replace(call, relative_values=None))


class WritesToItsInput(Sound):
    @override
    def run(self, call: AttentionCall) -> QueryHeads:
        with torch.no_grad():
            attended = EAGER.run(call)
            call.query.mul_(call.scale)
        return attended


class ReadsMemoryInOrder(Sound):
    """Takes the storage of the keys for the keys, as a kernel that ignores strides does."""

    @override
    def run(self, call: AttentionCall) -> QueryHeads:
        raw = torch.as_strided(call.query, call.query.shape, torch.empty(call.query.shape).stride())
        return EAGER.run(replace(call, query=raw))


FAULTS: dict[type[AttentionBackend], str] = {
    DropsTheBias: "every_bias_and_visibility_as_eager",
    DropsTheVisibility: "invisible_keys_do_not_matter",
    DropsTheRelativeValues: "relative_values_as_eager",
    DropsTheDropout: "dropout_is_honest",
    ForgetsToScaleDropout: "dropout_is_honest",
    DropsInEvaluation: "dropout_is_honest",
    NoNumbersForBlindQueries: "blind_queries_give_zeros",
    MeansForBlindQueries: "blind_queries_give_zeros",
    ScalesTooLate: "half_precision_does_not_overflow",
    OtherDtype: "every_dtype_is_kept",
    CausalAtTheUpperLeft: "every_shape_as_eager",
    NoGradientForTheBias: "every_bias_and_visibility_as_eager",
    RefusesWithoutReason: "relative_values_as_eager",
    RunsWhatItRefuses: "relative_values_as_eager",
    WritesToItsInput: "inputs_are_left_alone",
    ReadsMemoryInOrder: "layout_in_memory_does_not_matter",
}


def test_a_sound_backend_passes_with_a_result_for_each_check(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(registry._entries, NAME, Sound)
    results = check_backend(NAME)
    assert [result.name for result in results] == [check.name for check in backend_checks(NAME)]
    assert all(result.passed for result in results)


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.__name__)
def test_the_fault_is_found_by_its_check(
    fault: type[AttentionBackend], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(registry._entries, NAME, fault)
    checks = {check.name: check for check in backend_checks(NAME)}
    with pytest.raises(AssertionError, match=r"\S"):
        checks[FAULTS[fault]]()


def test_one_error_lists_every_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(registry._entries, NAME, DropsTheBias)
    with pytest.raises(AssertionError) as failure:
        check_backend(NAME)
    assert str(failure.value).startswith("backend 'broken' fails ")
    assert "\n  every_bias_and_visibility_as_eager: bias 'dense'" in str(failure.value)
