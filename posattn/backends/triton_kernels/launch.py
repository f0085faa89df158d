"""One attention call on the device: its tensors, its bundles of arguments, its launches."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any, final

import torch
import triton
from torch import Tensor

from posattn.backends.triton_kernels.chunks import Piece, pieces
from posattn.backends.triton_kernels.forward import forward_kernel
from posattn.backends.triton_kernels.sizes import TileSize
from posattn.backends.triton_kernels.slabs import Columns, Part, columns_between, exact, spread
from posattn.backends.triton_kernels.tiling import Places, Rules, Tiles

LOG2_E = 1.4426950408889634


@final
@dataclass(frozen=True)
class Job:
    """Everything that one attention call is made of; scores are [batch, heads, tokens, buckets]."""

    query: Tensor
    key: Tensor
    value: Tensor
    query_parts: list[Part]
    head_parts: list[Part]
    key_parts: list[Part]
    key_bias: Tensor | None  # [batch, heads, keys]
    places: Places
    rules: Rules
    low: int
    high: int
    reach: int
    seed: Tensor
    scale: float
    dropout: float

    @property
    def shape(self) -> tuple[int, int, int, int]:
        """Return the numbers of sequences, heads, queries and keys."""
        batch, heads, queries, _ = self.query.shape
        return batch, heads, queries, self.key.shape[2]

    @cached_property
    def accumulated(self) -> torch.dtype:
        """Return the type in which sums are kept."""
        return torch.float64 if self.query.dtype == torch.float64 else torch.float32

    def columns(self, size: TileSize) -> Columns:
        """Return the columns of query scores by distance."""
        return columns_between(self.low, self.high, self.reach, size.queries, size.keys)

    def pieces(
        self, size: TileSize, band: Tensor | None = None, by_key: bool = False
    ) -> list[Piece]:
        """Return pieces whose scores by distance fit into the working memory, with such a gradient."""
        batch, heads, queries, keys = self.shape
        tables = [*self.query_parts[:1], *self.key_parts[:1]]
        width = sum(part.scores.element_size() for part in tables)
        if band is not None:
            width += band.element_size()
        each = width * (self.columns(size).pitch + 2)
        if band is not None and not by_key:
            return list(pieces(batch, heads, queries, each, size.queries))
        whole = pieces(batch, heads, max(queries, keys), each, max(queries, keys))
        return [piece._replace(tokens=slice(0, queries)) for piece in whole]

    def bundles(self, piece: Piece, size: TileSize, tiles: Tiles) -> dict[str, Any]:
        """Return the arguments that all attention kernels share, for one piece."""
        query_slab, key_slab = self._slabs(piece, size)
        columns, keys = self.columns(size), self.columns(size).of_keys()
        bias = self.query if self.key_bias is None else self.key_bias[piece.batch, piece.heads]
        return {
            "slabs": (
                _pointers(query_slab, self.query, columns.pitch + 1),
                _pointers(key_slab, self.query, keys.pitch - 1),
                bias,
            ),
            "ends": (
                _ends(query_slab, self.query, columns.ends),
                _ends(key_slab, self.query, keys.ends),
            ),
            "sizes": (piece.tokens.stop - piece.tokens.start, self.shape[3]),
            "HAS": (query_slab is not None, key_slab is not None, self.key_bias is not None),
            "RULES": self.places.flags(self.rules),
            "DROPS": self.dropout > 0,
            "chance": (self.seed, 1.0 / (1.0 - self.dropout)),
            "threshold": int(self.dropout * 2**32),
            "bias_batch": 0 if self.key_bias is None else bias.stride(0),
            "bias_head": 0 if self.key_bias is None else bias.stride(1),
            "low": self.low,
            "high": self.high,
            "first": columns.first,
            "window": self.rules.window,
            "first_batch": piece.batch.start,
            "first_head": piece.heads.start,
            "first_row": piece.tokens.start,
            "num_heads": self.shape[1],
            "num_left": self.rules.num_left,
            **self.places.piece(piece, self.query),
            **tiles.piece(piece),
            **self._shapes(size),
        }

    def _shapes(self, size: TileSize) -> dict[str, Any]:
        is_fast = torch.get_float32_matmul_precision() != "highest"
        return {
            "SHAPE": (
                self.query.shape[3],
                max(triton.next_power_of_2(self.query.shape[3]), 16),
                self.value.shape[3],
                max(triton.next_power_of_2(self.value.shape[3]), 16),
                size.queries,
                size.keys,
            ),
            "ACCUMULATE": exact(self.query.dtype),
            "PRECISION": "tf32" if self.query.dtype == torch.float32 and is_fast else "ieee",
            "num_warps": size.warps,
            "num_stages": size.stages,
        }

    def _slabs(self, piece: Piece, size: TileSize) -> tuple[Tensor | None, Tensor | None]:
        columns, at = self.columns(size), (piece.batch, piece.heads)
        queries = [part.slice(*piece) for part in self.query_parts]
        heads = [part.slice(*piece) for part in self.head_parts]
        keys = [part.slice(*at, slice(None)) for part in self.key_parts]
        query_slab = key_slab = None
        if queries or heads:
            dtype = queries[0].scores.dtype if queries else self.accumulated
            query_slab = spread([*queries, *heads], columns, dtype)
        if keys:
            key_slab = spread(keys, columns.of_keys(), keys[0].scores.dtype)
        return query_slab, key_slab


def attend(job: Job, size: TileSize, tiles: Tiles) -> tuple[Tensor, Tensor]:
    """Return the attended values and log2 of the sum of exponentials of each query."""
    batch, heads, queries, _ = job.shape
    out = job.query.new_empty(batch, heads, queries, job.value.shape[3])
    log_sums = job.query.new_empty(batch, heads, queries, dtype=job.accumulated)
    for piece in job.pieces(size):
        at = piece.batch, piece.heads
        tensors = job.query[at], job.key[at], job.value[at], out[at]
        grid = (triton.cdiv(queries, size.queries), tensors[0].shape[1], tensors[0].shape[0])
        forward_kernel[grid](
            *tensors,
            log_sums[at],
            strides=tuple(one.stride()[:3] for one in tensors),
            scale=job.scale * LOG2_E,
            **job.bundles(piece, size, tiles),
        )
    return out, log_sums


def _pointers(slab: Tensor | None, absent: Tensor, shear: int) -> tuple[Tensor, int, int, int, int]:
    if slab is None:
        return absent, 0, 0, 0, 0
    batch, heads, row = _strides(slab)
    return slab, batch, heads, row, shear if row else 1


def _ends(
    slab: Tensor | None, absent: Tensor, columns: tuple[int, int]
) -> tuple[Tensor, int, int, int, int]:
    if slab is None:
        return absent, 0, 0, 0, 0
    ends = torch.stack([slab[..., column] for column in columns])
    return ends, ends.stride(0), *_strides(ends[0])


def _strides(tensor: Tensor) -> tuple[int, int, int]:
    """Return the strides of the first three axes, 0 where one entry stands for all."""
    batch, heads, rows = (
        0 if size == 1 else stride
        for size, stride in zip(tensor.shape[:3], tensor.stride()[:3], strict=True)
    )
    return batch, heads, rows
