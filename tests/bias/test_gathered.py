"""Biases looked up by bucket, entry by entry; among them the relative shift of Transformer-XL."""

import pytest
import torch

from posattn.bias import AttentionBias, BucketScores, KeyScores, QueryScores
from posattn.positions import GivenPairs, distances
from posattn.testing.statement_checks import by_score_mod

B, H, Q, K, R = 2, 3, 4, 5, 6


@pytest.fixture(params=[1, B], ids=["one bucket table for all", "a bucket table each"])
def bucket(request: pytest.FixtureRequest) -> torch.Tensor:
    generator = torch.Generator().manual_seed(1)
    return torch.randint(0, R, (request.param, Q, K), generator=generator)


def scores(*shape: int) -> torch.Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(2), dtype=torch.float64)


def assert_entries(bias: AttentionBias, bucket: torch.Tensor, rule: str) -> None:
    found = bias.materialize().expand(B, H, Q, K)
    whole = bias.scores  # type: ignore[attr-defined]
    for b in range(B):
        for h in range(H):
            for i in range(Q):
                for j in range(K):
                    r = int(bucket[b if len(bucket) > 1 else 0, i, j])
                    place = {"query": (b, h, i, r), "key": (b, h, j, r), "bucket": (h, r)}[rule]
                    assert found[b, h, i, j] == whole[place]
    assert torch.equal(by_score_mod(bias, (B, H, Q, K)), found)
    assert torch.equal(bias.terms()["name"].expand(B, H, Q, K), found)


def test_query_scores_are_those_of_the_query_at_the_bucket(bucket: torch.Tensor) -> None:
    assert_entries(QueryScores("name", scores(B, H, Q, R), GivenPairs(bucket)), bucket, "query")


def test_key_scores_are_those_of_the_key_at_the_bucket(bucket: torch.Tensor) -> None:
    assert_entries(KeyScores("name", scores(B, H, K, R), GivenPairs(bucket)), bucket, "key")


def test_bucket_scores_are_the_same_for_all_tokens(bucket: torch.Tensor) -> None:
    assert_entries(BucketScores("name", scores(H, R), GivenPairs(bucket)), bucket, "bucket")


def test_the_gather_is_the_relative_shift_of_transformer_xl() -> None:
    """Column N - 1 - (i - j) of row i: of the matrix 1..9 the lower triangle is 3; 5 6; 7 8 9."""
    positions = torch.arange(3)[None]
    column = 2 - distances(positions, positions)
    matrix = torch.arange(1.0, 10.0).view(1, 1, 3, 3)
    shifted = QueryScores("b", matrix, GivenPairs(column.clamp(0, 2))).materialize()[0, 0]
    rows = [shifted[i, : i + 1].tolist() for i in range(3)]
    assert rows == [[3.0], [5.0, 6.0], [7.0, 8.0, 9.0]]


def test_only_shared_bucket_scores_keep_the_whole_bias(bucket: torch.Tensor) -> None:
    table = scores(H, R)
    alone, shared = (
        BucketScores("name", table, GivenPairs(bucket), shared=kept) for kept in (False, True)
    )
    assert shared.materialize() is shared.materialize()
    assert alone.materialize() is not alone.materialize()
    assert torch.equal(alone.materialize(), shared.materialize())
