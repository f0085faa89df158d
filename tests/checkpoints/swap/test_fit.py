"""Least squares by bucket, against the same problem written out as one matrix."""

import torch

from posattn.checkpoints.swap.fit import fit_buckets, smallest_rows


def test_the_values_are_those_of_least_squares_with_a_number_per_query() -> None:
    torch.manual_seed(0)
    length, buckets = 9, 5
    bucket = torch.randint(buckets - 1, (length, length))  # the last bucket has no pairs
    scores = torch.randn(2, length, length, dtype=torch.float64)
    fit = fit_buckets(scores, bucket, buckets)
    rows = []
    for i in range(length):
        for j in range(length):
            row = torch.zeros(length + buckets, dtype=torch.float64)
            row[i] = row[length + bucket[i, j]] = 1.0
            rows.append(row)
    design = torch.stack(rows)
    for head in range(2):
        best = torch.linalg.pinv(design) @ scores[head].flatten()
        missed = float((design @ best - scores[head].flatten()).square().sum())
        centred = scores[head] - scores[head].mean(-1, keepdim=True)
        expected = 1 - missed / float(centred.square().sum())
        assert abs(float(fit.r_squared[head]) - expected) < 1e-10
        difference = fit.values[head, bucket] - best[length:][bucket]
        assert torch.allclose(difference, difference[0, 0].expand_as(difference), atol=1e-10)
    assert torch.equal(fit.values[:, -1], torch.zeros(2, dtype=torch.float64))


def test_scores_that_depend_on_buckets_alone_are_found_again() -> None:
    places = torch.arange(12)
    bucket = (places[:, None] - places + 4).clamp(0, 8)
    wanted = torch.randn(3, 9, dtype=torch.float64)
    fit = fit_buckets(wanted[:, bucket] + torch.randn(3, 12, 1), bucket, 9)
    assert torch.allclose(fit.r_squared, torch.ones(3, dtype=torch.float64))
    centred = wanted - wanted.mean(-1, keepdim=True)
    assert torch.allclose(fit.values - fit.values.mean(-1, keepdim=True), centred, atol=1e-8)


def test_rows_reach_targets_where_they_can_and_are_small() -> None:
    weights, targets = torch.randn(4, 16), torch.randn(4, 7)
    rows, share = smallest_rows(weights, targets)
    assert abs(share - 1.0) < 1e-9
    assert torch.allclose(weights.double() @ rows.T, targets.double(), atol=1e-8)
    other = torch.linalg.lstsq(weights.double(), targets.double()).solution.T
    assert torch.allclose(rows, other, atol=1e-8)
