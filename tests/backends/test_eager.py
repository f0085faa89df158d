"""Eager attention against a loop over every batch, head, query and key."""

import math

import pytest
import torch

from posattn.backends import AttentionCall, EagerBackend, logits_by_term, probabilities
from posattn.bias import (
    BucketScores,
    Causal,
    DenseBias,
    KeyScores,
    Padding,
    QueryScores,
    RelativeValues,
    SumBias,
    Visibility,
)
from posattn.positions import Distances, GivenPairs

B, H, Q, K, D, R = 2, 2, 3, 5, 4, 3
GENERATOR = torch.Generator().manual_seed(0)


def random(*shape: int) -> torch.Tensor:
    return torch.randn(shape, generator=GENERATOR, dtype=torch.float64)


@pytest.fixture
def call() -> AttentionCall:
    """A call with padding, a causal rule, three bias terms, and relative values."""
    distance = Distances(torch.arange(K - Q, K)[None], torch.arange(K)[None])
    bucket = distance.mapped(lambda apart: apart.remainder(R))
    keys = torch.ones(B, K, dtype=torch.bool)
    keys[1, 0] = False
    bias = SumBias(
        (
            QueryScores("q", random(B, H, Q, R), bucket),
            KeyScores("k", random(B, H, K, R), bucket),
            DenseBias("k", random(B, 1, 1, K)),
        )
    )
    return AttentionCall(
        query=random(B, H, Q, D),
        key=random(B, H, K, D),
        value=random(B, H, K, D),
        scale=0.3,
        bias=bias,
        visibility=Visibility((Padding(keys), Causal(distance))),
        relative_values=RelativeValues(random(R, D), (bucket,)),
    )


def loops(call: AttentionCall) -> list[list[list[list[float]]]]:
    """Return the attended values by the formula, one number at a time."""
    query, key, value = call.query.tolist(), call.key.tolist(), call.value.tolist()
    assert call.bias is not None
    assert call.visibility.pairs is not None
    assert call.relative_values is not None
    bias = call.bias.materialize().expand(B, H, Q, K).tolist()
    visible = call.visibility.pairs.expand(B, H, Q, K).tolist()
    table = call.relative_values.table.tolist()
    bucket = call.relative_values.buckets[0].pairs[0].tolist()
    output = torch.zeros(B, H, Q, D, dtype=torch.float64).tolist()
    for b in range(B):
        for h in range(H):
            for i in range(Q):
                weights = [0.0] * K
                for j in range(K):
                    if visible[b][h][i][j]:
                        product = sum(query[b][h][i][c] * key[b][h][j][c] for c in range(D))
                        weights[j] = math.exp(call.scale * product + bias[b][h][i][j])
                for c in range(D):
                    output[b][h][i][c] = sum(
                        weights[j] / sum(weights) * (value[b][h][j][c] + table[bucket[i][j]][c])
                        for j in range(K)
                    )
    return output


def test_eager_is_the_formula_written_as_loops(call: AttentionCall) -> None:
    expected = torch.tensor(loops(call), dtype=torch.float64)
    torch.testing.assert_close(EagerBackend().attend(call), expected)


def test_probabilities_sum_to_one_and_are_zero_at_invisible_keys(call: AttentionCall) -> None:
    probs = probabilities(call)
    torch.testing.assert_close(probs.sum(-1), torch.ones(B, H, Q, dtype=torch.float64))
    assert call.visibility.pairs is not None
    assert bool((probs[~call.visibility.pairs.expand_as(probs)] == 0).all())


def test_terms_have_their_names_and_sum_to_the_logits(call: AttentionCall) -> None:
    terms = logits_by_term(call, "c2c")
    assert list(terms) == ["c2c", "q", "k"]
    torch.testing.assert_close(terms["c2c"], call.scale * call.query @ call.key.mT)
    assert call.bias is not None
    total = terms["c2c"] + terms["q"] + terms["k"]
    torch.testing.assert_close(
        total, call.scale * call.query @ call.key.mT + call.bias.materialize()
    )


def test_a_uniform_bias_does_not_overflow_the_softmax() -> None:
    zeros = torch.zeros(1, 1, 1, 2)
    scores = BucketScores("b", torch.tensor([[3e4, 3e4]]), GivenPairs(torch.tensor([[[0, 1]]])))
    value = torch.tensor([[[[1.0, 1.0], [3.0, 3.0]]]])
    call = AttentionCall(zeros, torch.zeros(1, 1, 2, 2), value, 1.0, scores)
    assert EagerBackend().attend(call).tolist() == [[[[2.0, 2.0]]]]
