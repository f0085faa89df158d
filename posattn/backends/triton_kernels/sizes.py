"""How large the tiles are, by width of the heads and type of the numbers."""

from typing import NamedTuple

import torch
import triton


class TileSize(NamedTuple):
    """Queries and keys of a tile, warps of a program, stages of its software pipeline."""

    queries: int
    keys: int
    warps: int
    stages: int


def forward_size(width: int, dtype: torch.dtype) -> TileSize:
    """Return the tiles of the forward pass."""
    if dtype.itemsize > 2:
        return TileSize(64, 32 if width > 64 else 64, 4, 2)
    return TileSize(128, 64 if width <= 64 else 32, 8, 3 if width <= 64 else 2)


def by_query_size(width: int, dtype: torch.dtype) -> TileSize:
    """Return the tiles of the backward pass that goes by blocks of queries."""
    if dtype.itemsize > 2:
        return TileSize(32 if width > 64 else 64, 32, 4, 1)
    return TileSize(64, 64, 4 if width <= 64 else 8, 2 if width <= 64 else 1)


def by_key_size(width: int, dtype: torch.dtype) -> TileSize:
    """Return the tiles of the backward pass that goes by blocks of keys."""
    if dtype.itemsize > 2:
        return TileSize(32, 32 if width > 64 else 64, 4, 1)
    return TileSize(64, 64, 4 if width <= 64 else 8, 1)


def fitted(size: TileSize, num_queries: int, num_keys: int) -> TileSize:
    """Return the size, no larger than a short sequence needs, and at least 16 by 16."""
    queries = max(min(size.queries, triton.next_power_of_2(num_queries)), 16)
    keys = max(min(size.keys, triton.next_power_of_2(num_keys)), 16)
    return size._replace(queries=queries, keys=keys)
