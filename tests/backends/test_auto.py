"""`auto` takes the fastest backend that does not refuse, and says which."""

from typing import ClassVar

import pytest
import torch
from typing_extensions import override

from posattn.backends import AttentionBackend, AttentionCall, AutoBackend
from posattn.bias import RelativeValues
from posattn.errors import BackendRefusal
from posattn.positions import GivenPairs
from posattn.shapes import QueryHeads

STATES = torch.ones(1, 1, 2, 4)
PLAIN = AttentionCall(STATES, STATES, STATES, 0.5)
WITH_VALUES = AttentionCall(
    STATES,
    STATES,
    STATES,
    0.5,
    relative_values=RelativeValues(
        torch.ones(1, 4), (GivenPairs(torch.zeros(1, 2, 2, dtype=torch.long)),)
    ),
)


class Picky(AttentionBackend):
    """Refuses everything."""

    name: ClassVar[str] = "picky"

    @override
    def refusals(self, call: AttentionCall) -> list[str]:
        return ["it is Monday", "it rains"]

    @override
    def run(self, call: AttentionCall) -> QueryHeads:
        raise AssertionError("a refused call must not run")

    @override
    def rank(self, call: AttentionCall) -> int:
        return 0


def test_a_plain_call_goes_to_sdpa() -> None:
    auto = AutoBackend()
    assert torch.equal(auto.attend(PLAIN), STATES)
    assert auto.chosen == {"sdpa"}


def test_relative_values_go_to_eager() -> None:
    auto = AutoBackend()
    torch.testing.assert_close(auto.attend(WITH_VALUES), 2 * STATES)
    assert auto.chosen == {"eager"}


def test_a_backend_that_refuses_is_passed_over_whatever_its_rank() -> None:
    auto = AutoBackend()
    auto.candidates.append(Picky())
    auto.attend(PLAIN)
    assert auto.chosen == {"sdpa"}


def test_if_all_refuse_the_error_has_every_reason() -> None:
    auto = AutoBackend()
    auto.candidates = [Picky()]
    with pytest.raises(BackendRefusal, match="picky: it is Monday, it rains"):
        auto.attend(PLAIN)


def test_a_named_backend_raises_with_all_its_reasons_and_never_runs() -> None:
    with pytest.raises(BackendRefusal, match=r"'picky' cannot run.*it is Monday; it rains"):
        Picky().attend(PLAIN)
