"""From an attention call and its plan to the operators, and back."""

import torch
from torch import Tensor

from posattn.backends.base import AttentionCall
from posattn.backends.triton_kernels import ops
from posattn.backends.triton_kernels.sizes import (
    TileSize,
    by_key_size,
    by_query_size,
    fitted,
    forward_size,
)
from posattn.backends.triton_plan import Plan
from posattn.backends.triton_statement import Statement
from posattn.shapes import QueryHeads


def run(
    call: AttentionCall, said: Statement, plan: Plan, tile: tuple[int, int] | None
) -> QueryHeads:
    """Return the attended values of a call that the kernels can do."""
    scores, kinds = _scores(call, said)
    empty = plan.places[0].new_empty(0)
    rows = [*(part.row for part in said.scored), *[empty] * (len(scores) - len(said.scored))]
    sizes = [_tile(call, size, tile) for size in _sizes(call)]
    lists, bounds = _lists(plan, sizes, rows)
    seed = plan.places[0]
    if call.dropout > 0:
        seed = torch.randint(2**62, (1,), device=call.query.device)
    attended, _ = ops.attention(
        *(_inner(one) for one in (call.query, call.key, call.value)),
        scores,
        rows,
        kinds,
        plan.places,
        lists,
        plan.rules,
        bounds,
        seed,
        [call.scale, call.dropout],
        [number for size in sizes for number in size],
        [one.requires_grad for one in scores],
    )
    return attended


def _scores(call: AttentionCall, said: Statement) -> tuple[list[Tensor], list[int]]:
    parts = {ops.BY_QUERY: said.by_query, ops.BY_KEY: said.by_key, ops.BY_HEAD: said.by_head}
    kinds = [kind for kind, found in parts.items() for _ in found]
    scores = [_no_wider(part.scores, call.query) for part in said.scored]
    if said.key_biases:
        batch, heads, keys = (*call.query.shape[:2], call.key.shape[2])
        total = sum(_no_wider(one, call.query)[:, :, 0] for one in said.key_biases)
        assert isinstance(total, Tensor)
        scores.append(total.expand(batch, heads, keys))
        kinds.append(ops.KEY_BIAS)
    return scores, kinds


def _no_wider(scores: Tensor, query: Tensor) -> Tensor:
    """Return the scores in float32 or less, in what interpreted kernels compute float64 queries."""
    exact = torch.float64 if query.dtype == torch.float64 else torch.float32
    return scores if scores.dtype.itemsize <= exact.itemsize else scores.to(exact)


def _inner(heads: Tensor) -> Tensor:
    """Return the heads with their last axis contiguous."""
    return heads if heads.stride(-1) == 1 else heads.contiguous()


def _sizes(call: AttentionCall) -> list[TileSize]:
    width = max(call.query.shape[-1], call.value.shape[-1])
    return [
        choose(width, call.query.dtype) for choose in (forward_size, by_query_size, by_key_size)
    ]


def _tile(call: AttentionCall, size: TileSize, tile: tuple[int, int] | None) -> TileSize:
    if tile is not None:
        return size._replace(queries=tile[0], keys=tile[1])
    return fitted(size, call.query.shape[2], call.key.shape[2])


def _lists(plan: Plan, sizes: list[TileSize], rows: list[Tensor]) -> tuple[list[Tensor], Tensor]:
    key = tuple(sizes)
    if key not in plan.lists:
        reach = max((len(row) - 1) // 2 for row in rows) if rows else 0
        bounds = ops.told_apart([row for row in rows if row.numel()])
        shared = plan.places, plan.rules, bounds, max(reach, 0)
        found = [
            one
            for size, by_key in zip(sizes, (False, False, True), strict=True)
            for one in ops.tiles(*shared, list(size), by_key, bool(plan.rows))
        ]
        plan.lists[key] = [*found, bounds]
    *lists, bounds = plan.lists[key]
    return lists, bounds
