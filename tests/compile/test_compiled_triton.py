"""The triton backend is one step of a compiled graph, forward and backward; kernels run interpreted."""

import pytest
import torch
from torch import Tensor
from torch.testing import assert_close

from posattn.backends import AttentionBackend, AttentionCall, EagerBackend, TritonBackend
from posattn.bias import Causal, KeyScores, QueryScores, SumBias, Visibility
from posattn.positions import Distances

pytestmark = pytest.mark.compile


AT = torch.arange(9)[None]
DISTANCE = Distances(AT, AT, 8)
BUCKET = DISTANCE.mapped(lambda apart: apart.clamp(-2, 2) + 2)


def attend(
    backend: AttentionBackend, query: Tensor, key: Tensor, by_query: Tensor, by_key: Tensor
) -> Tensor:
    bias = SumBias((QueryScores("c2p", by_query, BUCKET), KeyScores("p2c", by_key, BUCKET)))
    rules = Visibility((Causal(DISTANCE),))
    return backend.attend(AttentionCall(query, key, key, 0.5, bias, rules))


def test_attention_with_scores_by_distance_compiles_without_a_break():
    compiled = torch.compile(attend, backend="aot_eager", fullgraph=True)
    numbers = [torch.randn(1, 2, 9, width, requires_grad=True) for width in (8, 8, 5, 5)]
    given = compiled(TritonBackend(), *numbers)
    expected = attend(EagerBackend(), *numbers)
    assert_close(given, expected)
    found = torch.autograd.grad(given.square().sum(), numbers)
    assert_close(found, torch.autograd.grad(expected.square().sum(), numbers))
