"""Least squares: scores between positions as a function of the bucket of their distance."""

from typing import NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor


class Fit(NamedTuple):
    """A value for each bucket, in float64, and the share of the variance that these values explain."""

    values: Float[Tensor, "heads buckets"]
    r_squared: Float[Tensor, " heads"]


def fit_buckets(
    scores: Float[Tensor, "heads length length"],
    bucket: Int[Tensor, "length length"],
    num_buckets: int,
) -> Fit:
    """Return the values b that minimise the sum over i, j of (scores[i, j] - a[i] - b[bucket[i, j]])^2.

    `a` is any number per query: softmax does not see it, so its part of the variance does not count
    either. Of the values that do equally well, the smallest are returned; buckets without pairs get 0.
    """
    centred = (scores - scores.mean(-1, keepdim=True)).double()
    length = scores.shape[-1]
    counts = torch.zeros(length, num_buckets, dtype=torch.float64)
    counts.scatter_add_(1, bucket, torch.ones_like(bucket, dtype=torch.float64))
    normal = torch.diag(counts.sum(0)) - counts.T @ counts / length
    sums = torch.zeros(scores.shape[0], num_buckets, dtype=torch.float64)
    sums.index_add_(1, bucket.flatten(), centred.flatten(1))
    values = sums @ torch.linalg.pinv(normal, hermitian=True)
    explained = (values * sums).sum(-1)
    total = centred.square().sum((-1, -2)).clamp(min=torch.finfo(torch.float64).tiny)
    return Fit(values, explained / total)


def smallest_rows(
    weights: Float[Tensor, "scores hidden"], targets: Float[Tensor, "scores buckets"]
) -> tuple[Float[Tensor, "buckets hidden"], float]:
    """Return the smallest rows t that come nearest to weights . t = targets, and how near: R^2."""
    weights, targets = weights.double(), targets.double()
    rows = targets.T @ torch.linalg.pinv(weights).T
    missed = (weights @ rows.T - targets).square().sum()
    total = targets.square().sum().clamp(min=torch.finfo(torch.float64).tiny)
    return rows, float(1 - missed / total)
