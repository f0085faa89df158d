"""What each backend computes of each mechanism, asked and not written down."""

import torch

from posattn.backends import AttentionCall, SDPABackend
from posattn.recipe.capability import DEVICES, absent_devices, ask_backends


def able(answers, **conditions):
    return {
        not answer.reasons
        for answer in answers
        if all(getattr(answer, key) == value for key, value in conditions.items())
    }


def test_every_answer_is_what_the_backend_says_of_a_call(monkeypatch):
    calls: list[AttentionCall] = []

    def refusals(self: SDPABackend, call: AttentionCall) -> list[str]:
        calls.append(call)
        return ["it is tired"] if call.dropout and call.query.dtype == torch.float32 else []

    monkeypatch.setattr(SDPABackend, "refusals", refusals)
    answers = ask_backends(["t5"], ["sdpa"], ["cpu"], ("float32", "bfloat16"))
    assert len(answers) == 2 * 3 * 2  # dtypes, modes, packed or padded
    tired = [answer for answer in answers if answer.reasons]
    assert {(a.dtype, a.training, a.dropout) for a in tired} == {("float32", True, 0.1)}
    assert {a.reasons for a in tired} == {("it is tired",)}
    assert all(call.bias is not None for call in calls)
    assert {call.query.dtype for call in calls} == {torch.float32, torch.bfloat16}
    assert {call.query.requires_grad for call in calls} == {True, False}
    assert {type(rule).__name__ for call in calls for rule in call.visibility.rules} == {
        "Padding",
        "SameDocument",
    }


def test_the_known_limits_are_found():
    answers = ask_backends(
        ["shaw", "rope", "xpos"], ["sdpa", "flex", "auto"], ["cpu"], ("float32",)
    )
    assert able(answers, mechanism="shaw", backend="sdpa") == {False}
    assert able(answers, mechanism="shaw", backend="auto") == {True}
    assert {a.taken_by for a in answers if (a.mechanism, a.backend) == ("shaw", "auto")} == {
        "eager"
    }
    assert able(answers, mechanism="rope", backend="flex", training=False) == {True}
    assert able(answers, mechanism="rope", backend="flex", training=True) == {False}
    assert able(answers, mechanism="xpos", backend="sdpa") == {True}


def test_devices_that_are_not_there_are_left_out_and_said_with_the_reason():
    there = {answer.device for answer in ask_backends(["none"], ["eager"], dtypes=("float32",))}
    assert there.isdisjoint(absent_devices())
    assert there | set(absent_devices()) == set(DEVICES)
    assert all(absent_devices().values())
