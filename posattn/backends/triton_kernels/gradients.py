"""The backward pass of one call: queries with what is scored by query, then keys likewise."""

from typing import NamedTuple

import torch
import triton
from torch import Tensor

from posattn.backends.triton_kernels.backward import key_backward_kernel, query_backward_kernel
from posattn.backends.triton_kernels.launch import LOG2_E, Job
from posattn.backends.triton_kernels.sizes import TileSize
from posattn.backends.triton_kernels.slabs import Columns, Fold, Part
from posattn.backends.triton_kernels.tiling import Tiles


class Outcome(NamedTuple):
    """What the forward pass returned and what came back for it."""

    grad: Tensor
    log_sums: Tensor
    deltas: Tensor  # per query, the sum of gradient times output

    @classmethod
    def of(cls, job: Job, grad: Tensor, out: Tensor, log_sums: Tensor) -> "Outcome":
        """Return it, with the gradient's last axis contiguous."""
        kept = grad if grad.stride(-1) == 1 else grad.contiguous()
        exact = job.accumulated
        return cls(kept, log_sums, (kept.to(exact) * out.to(exact)).sum(-1))


class Wanted(NamedTuple):
    """A part of the bias with the gradient of its scores, to be filled in."""

    part: Part
    gradient: Tensor


def by_query(
    job: Job,
    outcome: Outcome,
    size: TileSize,
    tiles: Tiles,
    tables: list[Wanted],
    heads: list[Wanted],
) -> Tensor:
    """Return the gradient of the queries; fill in those of query scores and of scores by head."""
    columns, (_, num_heads, _, _) = job.columns(size), job.shape
    of_query = torch.empty_like(job.query, memory_format=torch.contiguous_format)
    folds = [_fold(one, columns) for one in tables]
    total = job.query.new_zeros(1, num_heads, 1, columns.pitch, dtype=job.accumulated)
    has_band = bool(tables or heads)
    for piece in job.pieces(size, job.query if has_band else None):
        at = piece.batch, piece.heads
        tensors = job.query[piece], job.key[at], job.value[at], outcome.grad[piece]
        shape = tensors[0].shape[:3]
        band = job.query.new_zeros(*shape, columns.pitch if has_band else 1)
        query_backward_kernel[(triton.cdiv(shape[2], size.queries), shape[1], shape[0])](
            *tensors,
            outcome.log_sums[piece],
            outcome.deltas[piece],
            of_query[piece],
            band,
            strides=tuple(one.stride()[:3] for one in tensors),
            band_pitch=columns.pitch,
            band_shear=columns.pitch + 1,
            scale=(job.scale, job.scale * LOG2_E),
            BANDS=has_band,
            **job.bundles(piece, size, tiles),
        )
        for one, fold in zip(tables, folds, strict=True):
            fold.fold(band, one.gradient[piece])
        if heads:
            total[0, piece.heads, 0] += band.sum(dim=(0, 2), dtype=total.dtype)
    for one in heads:
        _fold(one, columns).fold(total, one.gradient)
    return of_query


def by_key(
    job: Job, outcome: Outcome, size: TileSize, tiles: Tiles, tables: list[Wanted]
) -> tuple[Tensor, Tensor, Tensor]:
    """Return the gradients of keys, values and key bias; fill in those of key scores."""
    columns, (batch, num_heads, _, keys) = job.columns(size).of_keys(), job.shape
    of_key = torch.empty_like(job.key, memory_format=torch.contiguous_format)
    of_value = torch.empty_like(job.value, memory_format=torch.contiguous_format)
    of_bias = job.key.new_empty(batch, num_heads, keys, dtype=job.accumulated)
    folds = [_fold(one, columns) for one in tables]
    for piece in job.pieces(size, job.key if tables else None, by_key=True):
        at = piece.batch, piece.heads
        tensors = job.query[at], job.key[at], job.value[at], outcome.grad[at]
        shape = tensors[1].shape[:3]
        band = job.key.new_zeros(*shape, columns.pitch if tables else 1)
        key_backward_kernel[(triton.cdiv(keys, size.keys), shape[1], shape[0])](
            *tensors,
            outcome.log_sums[at],
            outcome.deltas[at],
            of_key[at],
            of_value[at],
            of_bias[at],
            band,
            strides=tuple(one.stride()[:3] for one in tensors),
            band_pitch=columns.pitch,
            band_shear=columns.pitch - 1,
            scale=(job.scale, job.scale * LOG2_E),
            BANDS=bool(tables),
            **job.bundles(piece, size, tiles),
        )
        for one, fold in zip(tables, folds, strict=True):
            fold.fold(band, one.gradient[at])
    return of_key, of_value, of_bias


def _fold(one: Wanted, columns: Columns) -> Fold:
    return Fold.of(one.part.row, columns, one.part.scores.shape[-1])
