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
    empty = plan.places()[0].new_empty(0)
    rows = [*(part.row for part in said.scored), *[empty] * (len(scores) - len(said.scored))]
    sizes = [_tile(call, size, tile) for size in _sizes(call)]
    bounds = _bounds(plan)
    lists = _lists(plan, sizes[: 3 if _learns(call, scores) else 1], bounds)
    seed = plan.places()[0]
    if call.dropout > 0:
        seed = torch.randint(2**62, (1,), device=call.query.device)
    attended, _ = ops.attention(
        *(_inner(one) for one in (call.query, call.key, call.value)),
        scores,
        rows,
        kinds,
        plan.places(),
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


def _learns(call: AttentionCall, scores: list[Tensor]) -> bool:
    tensors = (call.query, call.key, call.value, *scores)
    return torch.is_grad_enabled() and any(one.requires_grad for one in tensors)


def _bounds(plan: Plan) -> Tensor:
    """Return between which entries of the rows distances are told apart, on the CPU."""
    if "bounds" not in plan.found:
        plan.found["bounds"] = [ops.told_apart(plan.rows)]
    return plan.found["bounds"][0]


def _lists(plan: Plan, sizes: list[TileSize], bounds: Tensor) -> list[Tensor]:
    """Return lists of tiles with their counts: forward, and if there are sizes, by query and by key."""
    reach = (plan.rows[0].shape[0] - 1) // 2 if plan.rows else 0
    lists = []
    for size, by_key in zip(sizes, (False, False, True), strict=False):
        made_for = size.queries, size.keys, by_key
        if made_for not in plan.found:
            found = ops.tiles(
                plan.places(), plan.rules, bounds, reach, list(size), by_key, bool(plan.rows)
            )
            plan.found[made_for] = list(found)
        lists += plan.found[made_for]
    return lists
