"""Distances between positions. Distance is query position minus key position, here and everywhere."""

from jaxtyping import Int
from torch import Tensor

from posattn.shapes import Pairs


def distances(
    query_positions: Int[Tensor, "#batch query"], key_positions: Int[Tensor, "#batch key"]
) -> Pairs:
    """Return query position minus key position for every pair."""
    return query_positions[:, :, None] - key_positions[:, None, :]


def clipped(distance: Int[Tensor, "*any"], limit: int) -> Int[Tensor, "*any"]:
    """Return the distance held within -limit..limit."""
    return distance.clamp(-limit, limit)
