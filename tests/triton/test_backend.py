"""What the triton backend refuses, when it is chosen, and what it remembers between layers."""

from dataclasses import replace
from typing import Any

import pytest
import torch

from posattn.backends import AttentionCall, AutoBackend, TritonBackend
from posattn.bias import (
    BucketScores,
    DenseBias,
    QueryScores,
    RelativeValues,
    Visibility,
    VisibilityRule,
    Window,
)
from posattn.errors import BackendRefusal
from posattn.positions import Distances, GivenPairs
from tests.triton.kernels.calls import counted, make

CALL = make(counted(4), counted(4), parts=("c2p",)).call
PAIRS = GivenPairs(torch.zeros(1, 4, 4, dtype=torch.long))
WIDE = torch.zeros(1, 1, 4, 129)
HALF = counted(4) / 2


class Unheard(VisibilityRule):
    """A rule of a plug-in."""

    def materialize(self) -> torch.Tensor:
        return torch.ones(1, 1, 4, 4, dtype=torch.bool)


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"query": CALL.query.float()}, "not in float32 and float64"),
        ({"query": WIDE, "key": WIDE, "value": WIDE}, "heads of value are 129 wide .at most 128"),
        ({"bias": DenseBias("d", torch.zeros(1, 1, 4, 4))}, "'d'.*an axis of 4 queries"),
        (
            {"bias": BucketScores("b", torch.zeros(1, 1), PAIRS)},
            "'b' are not a function of the dist",
        ),
        (
            {
                "bias": QueryScores(
                    "q", torch.zeros(1, 1, 4, 9), Distances(HALF, HALF).mapped(lambda d: d)
                )
            },
            "no int",
        ),
        (
            {"relative_values": RelativeValues(torch.ones(1, 8), (PAIRS,))},
            "relative values need .eager",
        ),
        ({"visibility": Visibility((Unheard(),))}, "rule of type Unheard"),
        ({"visibility": Visibility((Window(PAIRS, 1),))}, "window is not about distances"),
    ],
)
def test_what_it_cannot_do_is_refused_with_the_reason(changes: dict[str, Any], reason: str) -> None:
    with pytest.raises(BackendRefusal, match=reason):
        TritonBackend().attend(replace(CALL, **changes))


def test_without_a_gpu_it_refuses_and_names_the_interpreter(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("TRITON_INTERPRET")
    reasons = TritonBackend().refusals(CALL)
    assert any(
        "CUDA devices, not on cpu" in reason and "TRITON_INTERPRET=1" in reason
        for reason in reasons
    )


def test_without_the_package_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    assert "pip install 'posattn[triton]'" in TritonBackend().refusals(CALL)[0]


def test_tokens_that_share_a_position_have_no_gradient_of_scores_here() -> None:
    at = torch.tensor([[0, 1, 1, 2]])
    made = make(at, at, parts=("c2p",))
    with pytest.raises(BackendRefusal, match="share a position"):
        TritonBackend().attend(made.call)
    with torch.no_grad():
        TritonBackend().attend(made.call)


def test_padding_and_other_documents_may_share_positions() -> None:
    at = torch.tensor([[0, 1, 0, 1, -1, -1]])
    assert TritonBackend().refusals(make(at, at, parts=("c2p",)).call) != []
    from posattn.bias import SameDocument

    text = torch.tensor([[0, 0, 1, 1, 1, 1]])
    made = make(at, at, parts=("c2p",), rules=lambda distance: [SameDocument(text, text)])
    assert TritonBackend().refusals(made.call) == []


def test_auto_never_takes_the_interpreter() -> None:
    auto = AutoBackend()
    auto.attend(CALL)
    assert auto.chosen
    assert "triton" not in auto.chosen


def test_layers_of_one_forward_share_what_positions_come_to() -> None:
    backend = TritonBackend()
    backend.attend(CALL)
    first = backend._last
    backend.attend(replace(CALL, query=CALL.query * 2))
    assert backend._last is first
    backend.attend(make(counted(4), counted(4), parts=("c2p",)).call)
    assert backend._last is not first


def test_an_attention_call_without_bias_or_rules_is_plain_attention() -> None:
    plain = AttentionCall(CALL.query, CALL.key, CALL.value, 0.5)
    expected = torch.softmax(0.5 * CALL.query @ CALL.key.mT, -1) @ CALL.value
    torch.testing.assert_close(TritonBackend().attend(plain), expected)
