"""The kernels as PyTorch operators, so that autograd and torch.compile take each as one step.

A call's integers are `places` (see tiling.Places), `rules` (window, causal, heads that look left) and
`bounds`, on the CPU: first and last entry of the rows of buckets between which distances are told apart.
Scores come in one list, and `kinds` says which is by query, by key, by head, or a key bias.
"""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from posattn.backends.triton_kernels import gradients, launch
from posattn.backends.triton_kernels.launch import Job
from posattn.backends.triton_kernels.sizes import TileSize
from posattn.backends.triton_kernels.slabs import Part, columns_between
from posattn.backends.triton_kernels.tiling import Places, Rules, Tiles, list_tiles

BY_QUERY, BY_KEY, BY_HEAD, KEY_BIAS = range(4)


@torch.library.custom_op("posattn_triton::told_apart", mutates_args=())
def told_apart(rows: list[Tensor]) -> Tensor:
    """Return the first and last entry between which some row of buckets changes; reads the device."""
    low, high = [], []
    for row in (row.cpu() for row in rows):
        differs_from_first = (row != row[0]).nonzero()
        differs_from_last = (row != row[-1]).nonzero()
        is_constant = differs_from_first.numel() == 0
        low.append(len(row) - 1 if is_constant else int(differs_from_first[0]) - 1)
        high.append(0 if is_constant else int(differs_from_last[-1]) + 1)
    lowest = min(low, default=0)
    return torch.tensor([lowest, max([lowest, *high])])


@told_apart.register_fake
def _told_apart_shape(rows: list[Tensor]) -> Tensor:
    return torch.empty(2, dtype=torch.int64)


@torch.library.custom_op("posattn_triton::tiles", mutates_args=())
def tiles(
    places: list[Tensor],
    rules: list[int],
    bounds: Tensor,
    reach: int,
    size: list[int],
    by_key: bool,
    has_bias: bool,
) -> tuple[Tensor, Tensor]:
    """Return the lists of tiles, by block of queries or of keys, and where each kind ends."""
    shape = TileSize(*size)
    low, high = (int(bound) - reach for bound in bounds)
    columns = columns_between(low, high, reach, shape.queries, shape.keys)
    found = list_tiles(Places(*places), _rules(rules), columns, shape, by_key, has_bias)
    return found.lists, found.counts


@tiles.register_fake
def _tiles_shape(
    places: list[Tensor],
    rules: list[int],
    bounds: Tensor,
    reach: int,
    size: list[int],
    by_key: bool,
    has_bias: bool,
) -> tuple[Tensor, Tensor]:
    blocks = [-(-places[0].shape[1] // size[0]), -(-places[1].shape[1] // size[1])]
    own, other = reversed(blocks) if by_key else blocks
    shape = (_rules(rules).groups, places[0].shape[0], own)
    return places[0].new_empty(*shape, other), places[0].new_empty(*shape, 4)


@torch.library.custom_op("posattn_triton::attention", mutates_args=())
def attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    scores: list[Tensor],
    rows: list[Tensor],
    kinds: list[int],
    places: list[Tensor],
    lists: list[Tensor],
    rules: list[int],
    bounds: Tensor,
    seed: Tensor,
    numbers: list[float],
    sizes: list[int],
    wanted: list[bool],
) -> tuple[Tensor, Tensor]:
    """Return the attended values, and log2 of the sum of exponentials of each query.

    `numbers` are the scale and the share of probabilities dropped; `lists` the tiles of the forward pass,
    then by query and by key of the backward pass; `sizes` the tiles' shapes in these three;
    `wanted` says of which scores a gradient is wanted.
    """
    job = _job(query, key, value, scores, rows, kinds, places, rules, bounds, seed, numbers)
    size = TileSize(*sizes[:4])
    return launch.attend(job, size, Tiles(lists[0], lists[1], size.queries))


@attention.register_fake
def _attention_shape(
    query: Tensor, key: Tensor, value: Tensor, *rest: object
) -> tuple[Tensor, Tensor]:
    exact = torch.float64 if query.dtype == torch.float64 else torch.float32
    return query.new_empty(*query.shape[:3], value.shape[3]), query.new_empty(
        query.shape[:3], dtype=exact
    )


@torch.library.custom_op("posattn_triton::attention_backward", mutates_args=())
def attention_backward(
    grad: Tensor,
    out: Tensor,
    log_sums: Tensor,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    scores: list[Tensor],
    rows: list[Tensor],
    kinds: list[int],
    places: list[Tensor],
    lists: list[Tensor],
    rules: list[int],
    bounds: Tensor,
    seed: Tensor,
    numbers: list[float],
    sizes: list[int],
    wanted: list[bool],
) -> list[Tensor]:
    """Return the gradients of query, key, value and of the scores; empty where none is wanted."""
    job = _job(query, key, value, scores, rows, kinds, places, rules, bounds, seed, numbers)
    of_query_size, of_key_size = TileSize(*sizes[4:8]), TileSize(*sizes[8:])
    outcome = gradients.Outcome.of(job, grad, out, log_sums)
    parts = [
        gradients.Wanted(
            Part(_with_axes(one), row), torch.empty_like(one, memory_format=torch.contiguous_format)
        )
        for one, row in zip(scores, rows, strict=True)
    ]

    def of_kind(kind: int) -> list[gradients.Wanted]:
        chosen = zip(parts, kinds, wanted, strict=True)
        return [part for part, its, wants in chosen if its == kind and wants]

    of_query = gradients.by_query(
        job,
        outcome,
        of_query_size,
        Tiles(lists[2], lists[3], of_query_size.queries),
        of_kind(BY_QUERY),
        of_kind(BY_HEAD),
    )
    of_key, of_value, of_bias = gradients.by_key(
        job, outcome, of_key_size, Tiles(lists[4], lists[5], of_key_size.keys), of_kind(BY_KEY)
    )
    found = [
        part.gradient.new_empty(0)
        if not wants
        else of_bias.to(part.gradient.dtype)
        if kind == KEY_BIAS
        else part.gradient
        for part, kind, wants in zip(parts, kinds, wanted, strict=True)
    ]
    return [of_query, of_key, of_value, *found]


@attention_backward.register_fake
def _attention_backward_shape(
    grad: Tensor,
    out: Tensor,
    log_sums: Tensor,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    scores: list[Tensor],
    *rest: object,
) -> list[Tensor]:
    wanted = rest[-1]
    assert isinstance(wanted, Sequence)
    of_scores = [
        torch.empty_like(one, memory_format=torch.contiguous_format) if wants else one.new_empty(0)
        for one, wants in zip(scores, wanted, strict=True)
    ]
    return [
        torch.empty_like(one, memory_format=torch.contiguous_format) for one in (query, key, value)
    ] + of_scores


def _keep(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, Tensor]) -> None:
    query, key, value, scores, rows, kinds, places, lists, rules, bounds, seed, *plain = inputs
    groups = (scores, rows, places, lists)
    flat = [tensor for group in groups for tensor in group]
    ctx.save_for_backward(*output, query, key, value, bounds, seed, *flat)
    ctx.lengths = [len(group) for group in groups]
    ctx.plain = kinds, rules, plain
    ctx.nothing = [_no_gradient(one) for one in inputs]
    ctx.set_materialize_grads(False)


def _no_gradient(given: object) -> list[None] | None:
    """Return what stands for no gradient: for a list of tensors, or an empty list, a list."""
    is_list = isinstance(given, list) and all(isinstance(one, Tensor) for one in given)
    return [None] * len(given) if is_list and isinstance(given, list) else None


def _differentiate(ctx: Any, grad: Tensor | None, _: Tensor | None) -> tuple[Any, ...]:
    if grad is None:
        return tuple(ctx.nothing)
    out, log_sums, query, key, value, bounds, seed, *flat = ctx.saved_tensors
    kinds, rules, plain = ctx.plain
    ends = [sum(ctx.lengths[: index + 1]) for index in range(4)]
    scores, rows, places, lists = (
        flat[end - length : end] for end, length in zip(ends, ctx.lengths, strict=True)
    )
    places_of = (kinds, places, lists, rules, bounds, seed, *plain)
    of_query, of_key, of_value, *of_scores = attention_backward(
        grad, out, log_sums, query, key, value, scores, rows, *places_of
    )
    kept = [one if wants else None for one, wants in zip(of_scores, plain[-1], strict=True)]
    return of_query, of_key, of_value, kept, *ctx.nothing[4:]


attention.register_autograd(_differentiate, setup_context=_keep)


def _rules(rules: Sequence[int]) -> Rules:
    window, is_causal, num_left = rules
    return Rules(window, bool(is_causal), num_left)


def _with_axes(scores: Tensor) -> Tensor:
    """Return scores by head as scores of one sequence and one token."""
    return scores[None, :, None] if scores.ndim == 2 else scores


def _job(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    scores: list[Tensor],
    rows: list[Tensor],
    kinds: list[int],
    places: list[Tensor],
    rules: list[int],
    bounds: Tensor,
    seed: Tensor,
    numbers: list[float],
) -> Job:
    parts: dict[int, list[Part]] = {BY_QUERY: [], BY_KEY: [], BY_HEAD: [], KEY_BIAS: []}
    for one, row, kind in zip(scores, rows, kinds, strict=True):
        parts[kind].append(Part(_with_axes(one), row))
    reach = max((len(row) - 1) // 2 for row in [*rows, bounds])
    low, high = (int(bound) - reach for bound in bounds)
    biases = [part.scores for part in parts[KEY_BIAS]]
    return Job(
        query,
        key,
        value,
        parts[BY_QUERY],
        parts[BY_HEAD],
        parts[BY_KEY],
        biases[0] if biases else None,
        Places(*places),
        _rules(rules),
        low,
        high,
        reach,
        seed,
        *numbers,
    )
