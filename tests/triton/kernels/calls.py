"""Attention calls with scores by distance, and their comparison with eager attention in float64."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

import torch
from torch import Tensor

from posattn.backends import AttentionCall, EagerBackend, TritonBackend
from posattn.bias import (
    AttentionBias,
    BucketScores,
    DenseBias,
    KeyScores,
    QueryScores,
    SumBias,
    Visibility,
    VisibilityRule,
)
from posattn.positions import Distances, log_buckets

BUCKETS = 8
TILE = (16, 16)
ALL_PARTS = ("c2p", "p2c", "p2p", "keys")


def buckets(distance: Tensor) -> Tensor:
    """Return logarithmic buckets: distances of 6 and beyond are alike, in both directions."""
    return log_buckets(distance, BUCKETS // 2, 6) + BUCKETS // 2


def counted(length: int, start: int = 0) -> Tensor:
    """Return the positions start, start + 1, .."""
    return torch.arange(start, start + length)[None]


@dataclass
class Made:
    """A call in float64 with the tensors that want gradients, by name."""

    call: AttentionCall
    leaves: dict[str, Tensor] = field(default_factory=dict)

    def gradients(self, attended: Tensor) -> dict[str, Tensor]:
        """Return the gradients of a loss that weights every number differently."""
        weights = torch.linspace(-1.0, 1.0, attended.numel(), dtype=attended.dtype)
        loss = (attended * weights.view(attended.shape)).sum()
        found = torch.autograd.grad(loss, list(self.leaves.values()))
        return dict(zip(self.leaves, found, strict=True))


def make(
    query_at: Tensor,
    key_at: Tensor,
    *,
    rules: Callable[[Distances], Sequence[VisibilityRule]] = lambda distance: (),
    parts: Sequence[str] = ALL_PARTS,
    heads: int = 1,
    width: int = 8,
    value_width: int | None = None,
    function: Callable[[Tensor], Tensor] = buckets,
    dtype: torch.dtype = torch.float64,
) -> Made:
    """Return a call with random numbers at the given positions."""
    generator = torch.Generator().manual_seed(0)
    leaves: dict[str, Tensor] = {}

    def leaf(name: str, *shape: int) -> Tensor:
        noise = torch.randn(shape, generator=generator, dtype=torch.float64)
        leaves[name] = noise.to(dtype).requires_grad_()
        return leaves[name]

    batch, queries, keys = query_at.shape[0], query_at.shape[1], key_at.shape[1]
    distance = Distances(query_at, key_at)
    bucket = distance.mapped(function)
    makers: dict[str, Callable[[], AttentionBias]] = {
        "c2p": lambda: QueryScores("c2p", leaf("c2p", batch, heads, queries, BUCKETS), bucket),
        "p2c": lambda: KeyScores("p2c", leaf("p2c", batch, heads, keys, BUCKETS), bucket),
        "p2p": lambda: BucketScores("p2p", leaf("p2p", heads, BUCKETS), bucket),
        "keys": lambda: DenseBias("keys", leaf("keys", batch, heads, 1, keys)),
    }
    biases = tuple(makers[part]() for part in parts)
    call = AttentionCall(
        query=leaf("query", batch, heads, queries, width),
        key=leaf("key", batch, heads, keys, width),
        value=leaf("value", batch, heads, keys, value_width or width),
        scale=width**-0.5,
        bias=SumBias(biases) if biases else None,
        visibility=Visibility(tuple(rules(distance))),
    )
    return Made(call, leaves)


def assert_as_eager(made: Made, backend: TritonBackend, tolerance: float = 1e-10) -> None:
    """Outputs and all gradients are those of eager attention."""
    close = {"rtol": tolerance, "atol": tolerance}
    attended, expected = backend.attend(made.call), EagerBackend().attend(made.call)
    torch.testing.assert_close(attended, expected, **close)
    wanted = made.gradients(expected)
    for name, gradient in made.gradients(attended).items():
        torch.testing.assert_close(
            gradient, wanted[name], **close, msg=lambda m, n=name: f"{n}: {m}"
        )


def tiles_by_kind(backend: TritonBackend) -> list[int]:
    """Return how many tiles of each kind the last forward pass had: low, high, shear, general."""
    plan = backend._last
    assert plan is not None
    counts = plan.found[(*TILE, False)][1].flatten(0, 2)
    return counts.diff(dim=-1, prepend=counts.new_zeros(len(counts), 1)).sum(0).tolist()


def by_loops(call: AttentionCall) -> Tensor:
    """Return the attended values by the formula, one number at a time, in float64."""
    query, key, value = (one.double().tolist() for one in (call.query, call.key, call.value))
    (batch, heads, queries, _), keys = call.query.shape, call.key.shape[2]
    mod = call.bias.score_mod() if call.bias is not None else None
    out = torch.zeros(batch, heads, queries, call.value.shape[-1], dtype=torch.float64)
    for b in range(batch):
        for h in range(heads):
            for i in range(queries):
                logits = []
                for j in range(keys):
                    pairs = zip(query[b][h][i], key[b][h][j], strict=True)
                    logit = call.scale * sum(one * other for one, other in pairs)
                    at = (torch.tensor(one) for one in (b, h, i, j))
                    logits.append(
                        logit if mod is None else mod(torch.tensor(logit).double(), *at).item()
                    )
                weights = [math.exp(logit) for logit in logits]
                for c in range(out.shape[-1]):
                    terms = (w * value[b][h][j][c] for j, w in enumerate(weights))
                    out[b, h, i, c] = sum(terms) / sum(weights)
    return out


def in_dtype(made: Made, dtype: torch.dtype) -> AttentionCall:
    """Return the call with queries, keys and values in another type."""
    call = made.call
    return replace(
        call, query=call.query.to(dtype), key=call.key.to(dtype), value=call.value.to(dtype)
    )
