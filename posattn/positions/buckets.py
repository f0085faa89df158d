"""Log buckets: exact near by, ever coarser far away. Pure integer-in, integer-out functions."""

import math

import torch
from jaxtyping import Int
from torch import Tensor


def log_buckets(
    distance: Int[Tensor, "*any"], num_buckets: int, max_distance: int, held: bool = True
) -> Int[Tensor, "*any"]:
    """Return the signed log bucket of DeBERTa v2/v3, an odd function of the distance.

    With middle = num_buckets // 2, a distance d with |d| <= middle is its own bucket; beyond, it is
    sign(d) * (middle + ceil(ln(|d| / middle) / ln((max_distance - 1) / middle) * (middle - 1))).
    Distances are first held within -(max_distance - 1)..max_distance - 1, as Microsoft's code does, and the
    result lies within -(num_buckets - 1)..num_buckets - 1. Transformers' code does not hold them (`held`
    False), and buckets go on growing.

    Source: microsoft/DeBERTa, DeBERTa/deberta/da_utils.py (2023-03-25).
    """
    middle = num_buckets // 2
    near = distance.clamp(1 - max_distance, max_distance - 1) if held else distance
    size = near.abs()
    ratio = torch.log(size.clamp(min=middle).double() / middle) / math.log(
        (max_distance - 1) / middle
    )
    # The quotient of two logarithms may miss a whole number by a rounding error, in either
    # direction; 1e-9 is far below the spacing of true values and far above that error.
    far = middle + torch.ceil(ratio * (middle - 1) - 1e-9).to(distance.dtype)
    return torch.where(size <= middle, near, far * near.sign())


def t5_buckets(
    distance: Int[Tensor, "*any"], num_buckets: int, max_distance: int, bidirectional: bool
) -> Int[Tensor, "*any"]:
    """Return the bucket of T5, a row of a table of num_buckets rows.

    With n buckets per side and exact = n // 2, a key d >= 0 positions away has bucket d if d < exact, and
    exact + floor(ln(d / exact) / ln(max_distance / exact) * (n - exact)) beyond, n - 1 at most.
    `bidirectional` splits the buckets into halves: the first for the query's own place and keys to the
    left, the second for keys to the right, whose first row (distance 0) is never reached. Otherwise all
    buckets are for keys to the left, and keys to the right share bucket 0 with the query's own place.

    Source: transformers 5.24, modeling_t5.py, which follows Mesh TensorFlow.
    """
    per_side = num_buckets // 2 if bidirectional else num_buckets
    exact = per_side // 2
    size = distance.abs() if bidirectional else distance.clamp(min=0)
    ratio = torch.log(size.clamp(min=exact).double() / exact) / math.log(max_distance / exact)
    # as above: a true whole number may come out a rounding error too small
    far = exact + torch.floor(ratio * (per_side - exact) + 1e-9).to(distance.dtype)
    bucket = torch.where(size < exact, size, far.clamp(max=per_side - 1))
    return bucket + per_side * (distance < 0) if bidirectional else bucket
