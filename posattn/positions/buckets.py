"""Log buckets: exact near by, ever coarser far away. Pure integer-in, integer-out functions."""

import math

import torch
from jaxtyping import Int
from torch import Tensor


def log_buckets(
    distance: Int[Tensor, "*any"], num_buckets: int, max_distance: int
) -> Int[Tensor, "*any"]:
    """Return the signed log bucket of DeBERTa v2/v3, an odd function of the distance.

    With middle = num_buckets // 2, a distance d with |d| <= middle is its own bucket; beyond, it is
    sign(d) * (middle + ceil(ln(|d| / middle) / ln((max_distance - 1) / middle) * (middle - 1))).
    Distances are first held within -(max_distance - 1)..max_distance - 1, as Microsoft's code does and
    transformers' does not (there, distances past the maximum reach rows that training never touched).
    The result lies within -(num_buckets - 1)..num_buckets - 1.

    Source: microsoft/DeBERTa, DeBERTa/deberta/da_utils.py (2023-03-25).
    """
    middle = num_buckets // 2
    held = distance.clamp(1 - max_distance, max_distance - 1)
    size = held.abs()
    ratio = torch.log(size.clamp(min=middle).double() / middle) / math.log(
        (max_distance - 1) / middle
    )
    # The quotient of two logarithms may miss a whole number by a rounding error, in either
    # direction; 1e-9 is far below the spacing of true values and far above that error.
    far = middle + torch.ceil(ratio * (middle - 1) - 1e-9).to(distance.dtype)
    return torch.where(size <= middle, held, far * held.sign())
