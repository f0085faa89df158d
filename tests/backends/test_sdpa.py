"""What is special about PyTorch's fused attention: what it refuses, and its causal corner."""

import pytest
import torch

from posattn.backends import AttentionBackend, AttentionCall, EagerBackend, SDPABackend
from posattn.bias import Causal, RelativeValues, Visibility
from posattn.errors import BackendRefusal
from posattn.positions import Distances, GivenPairs


def test_relative_values_are_refused_with_the_reason() -> None:
    states = torch.zeros(1, 1, 2, 4)
    values = RelativeValues(torch.ones(1, 4), (GivenPairs(torch.zeros(1, 2, 2, dtype=torch.long)),))
    call = AttentionCall(states, states, states, 0.5, relative_values=values)
    with pytest.raises(BackendRefusal, match=r"'sdpa'.*relative values.*eager.*'auto'"):
        SDPABackend().attend(call)


@pytest.mark.parametrize("backend", [EagerBackend(), SDPABackend()], ids=lambda one: one.name)
def test_the_causal_triangle_lies_at_the_lower_right(backend: AttentionBackend) -> None:
    """Two queries after a memory of three: means of 0..3 and 0..4, not of 0 and of 0..1."""
    distance = Distances(torch.tensor([[3, 4]]), torch.arange(5)[None])
    value = torch.arange(5.0).view(1, 1, 5, 1)
    call = AttentionCall(
        query=torch.zeros(1, 1, 2, 1),
        key=torch.zeros(1, 1, 5, 1),
        value=value,
        scale=1.0,
        visibility=Visibility((Causal(distance),)),
    )
    assert backend.attend(call).flatten().tolist() == pytest.approx([1.5, 2.0])
