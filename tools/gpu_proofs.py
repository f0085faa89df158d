"""Proofs for gpu_check.py: backends against eager attention in float64, dropout, repeatability."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any, Protocol

import torch
from torch import Tensor

import posattn.backends
from posattn.backends import AttentionCall, EagerBackend
from posattn.bias import (
    AttentionBias,
    BucketScores,
    Causal,
    DenseBias,
    KeyScores,
    Padding,
    QueryScores,
    SameDocument,
    SumBias,
    Visibility,
    VisibilityRule,
)
from posattn.positions import Distances, log_buckets, t5_buckets

TOLERANCES = {torch.bfloat16: 2e-2, torch.float16: 3e-3, torch.float32: 2e-5}


class Rows(Protocol):
    """Where results go."""

    def add(self, table: str, **row: Any) -> None:
        """Add a row to a table."""

    def has_time(self) -> bool:
        """Return whether a new measurement may start."""


class Numbers:
    """Random tensors that want gradients, made in float64 so that every type starts from the same."""

    def __init__(self, device: torch.device) -> None:
        self.device, self.leaves = device, {}
        self._generator = torch.Generator().manual_seed(0)

    def leaf(self, name: str, *shape: int) -> Tensor:
        """Return a new one."""
        noise = torch.randn(shape, generator=self._generator, dtype=torch.float64).half().double()
        self.leaves[name] = noise.to(self.device).requires_grad_()
        return self.leaves[name]


def calls(device: torch.device, tiny: bool) -> Iterator[tuple[str, Numbers, AttentionCall]]:
    """Yield attention calls in float64 under their names, with their numbers."""
    length = 24 if tiny else 700
    at = torch.arange(length, device=device)[None]
    visible = torch.ones(2, length, dtype=torch.bool, device=device)
    visible[1, length - length // 3 :] = False
    document = (torch.arange(length, device=device) * 3 // length)[None].expand(2, -1)
    start = torch.zeros_like(document).scatter_reduce(
        1, document, at.expand(2, -1), "amin", include_self=False
    )
    restarting = at - start.gather(1, document)

    def deberta(numbers: Numbers, distance: Distances, queries: int) -> AttentionBias:
        near, far = (4, 8) if tiny else (256, 512)
        row = distance.mapped(lambda apart: log_buckets(apart, near, far) + near)
        return SumBias(
            (
                QueryScores("c2p", numbers.leaf("c2p", 2, 2, queries, 2 * near), row),
                KeyScores("p2c", numbers.leaf("p2c", 2, 2, length, 2 * near), row),
                BucketScores("p2p", numbers.leaf("p2p", 2, 2 * near), row),
            )
        )

    def transformer_xl(numbers: Numbers, distance: Distances, queries: int) -> AttentionBias:
        row = distance.mapped(lambda apart: apart + length - 1)
        return SumBias(
            (
                QueryScores("b", numbers.leaf("b", 2, 2, queries, 2 * length - 1), row),
                DenseBias("c", numbers.leaf("c", 2, 2, 1, length)),
                BucketScores("d", numbers.leaf("d", 2, 2 * length - 1), row),
            )
        )

    def t5(numbers: Numbers, distance: Distances, queries: int) -> AttentionBias:
        row = distance.mapped(lambda apart: t5_buckets(apart, 32, 128, True))
        return BucketScores("t5", numbers.leaf("t5", 2, 32), row)

    def make(
        bias: Callable[[Numbers, Distances, int], AttentionBias],
        width: int,
        query_at: Tensor = at,
        key_at: Tensor = at,
        rules: Callable[[Distances], tuple[VisibilityRule, ...]] = lambda distance: (),
    ) -> tuple[Numbers, AttentionCall]:
        numbers, queries = Numbers(device), query_at.shape[1]
        distance = Distances(query_at, key_at)
        query = numbers.leaf("query", 2, 2, queries, width)
        key, value = (numbers.leaf(name, 2, 2, length, width) for name in ("key", "value"))
        stated = bias(numbers, distance, queries)
        return numbers, AttentionCall(
            query, key, value, width**-0.5, stated, Visibility(rules(distance))
        )

    yield "deberta, padded, 64", *make(deberta, 64, rules=lambda distance: (Padding(visible),))
    packed = (SameDocument(document, document),)
    yield "deberta, packed, 80", *make(deberta, 80, restarting, restarting, lambda distance: packed)
    yield "deberta, other queries, 24", *make(deberta, 24, at[:, length // 2 :: 3])
    yield (
        "transformer_xl, causal, 64",
        *make(transformer_xl, 64, rules=lambda distance: (Causal(distance),)),
    )
    yield "t5, 128", *make(t5, 128)


def in_type(
    call: AttentionCall, numbers: Numbers, dtype: torch.dtype
) -> tuple[AttentionCall, list[Tensor]]:
    """Return the call with all its numbers in another type, and those numbers."""
    leaves = {name: one.detach().to(dtype).requires_grad_() for name, one in numbers.leaves.items()}
    parts = call.bias.parts() if call.bias is not None else ()
    renamed = tuple(
        replace(part, **{"value" if isinstance(part, DenseBias) else "scores": leaves[part.name]})
        for part in parts
    )
    heads = {name: leaves[name] for name in ("query", "key", "value")}
    return replace(call, bias=SumBias(renamed), **heads), list(leaves.values())


def prove(report: Rows, device: torch.device, tiny: bool, dtype: torch.dtype) -> None:
    """Compare every backend in one type with eager attention in float64, outputs and all gradients."""
    names = [name for name in posattn.backends.names() if name not in ("auto", "eager")]
    for what, numbers, call in calls(device, tiny):
        expected = EagerBackend().attend(call)
        weights = torch.randn(expected.shape, generator=torch.Generator().manual_seed(1)).to(device)
        leaves = list(numbers.leaves.values())
        wanted = torch.autograd.grad((expected * weights).sum(), leaves)
        for name in names:
            row = {"backend": name, "call": what, "type": str(dtype).removeprefix("torch.")}
            if report.has_time():
                _prove_one(report, row, in_type(call, numbers, dtype), (expected, weights, wanted))
            else:
                report.add("Correctness", **row, refused="not reached in time")


def _prove_one(
    report: Rows,
    row: dict[str, str],
    typed: tuple[AttentionCall, list[Tensor]],
    truth: tuple[Tensor, Tensor, tuple[Tensor, ...]],
) -> None:
    (call, leaves), (expected, weights, wanted) = typed, truth
    backend = posattn.backends.get(row["backend"])()
    if reasons := backend.refusals(call):
        report.add("Correctness", **row, refused="; ".join(reasons))
        return
    attended = backend.attend(call)
    found = torch.autograd.grad((attended * weights).sum(), leaves)
    error = _relative(attended, expected)
    of_gradients = max(_relative(a, b) for a, b in zip(found, wanted, strict=True))
    limit = TOLERANCES[call.query.dtype]
    passed = error < limit and of_gradients < 3 * limit
    errors = {"error": f"{error:.1e}", "gradient error": f"{of_gradients:.1e}"}
    report.add("Correctness", **row, **errors, passed=passed)


def _relative(found: Tensor, expected: Tensor) -> float:
    return float(
        (found.detach().double() - expected.detach()).abs().max() / expected.detach().abs().max()
    )


def prove_dropout(report: Rows, device: torch.device, tiny: bool) -> None:
    """Show that the triton backend drops the right share, the same in backward, and repeats."""
    length = 24 if tiny else 128
    value = torch.eye(length, device=device, dtype=torch.float32)[None, None].repeat(1, 2, 1, 1)
    value.requires_grad_()
    zeros = torch.zeros(1, 2, length, 16, device=device)
    call = AttentionCall(zeros, zeros, value, 1.0, dropout=0.25)
    backend = posattn.backends.get("triton")()
    if reasons := backend.refusals(call):
        report.add("Dropout", refused="; ".join(reasons))
        return
    runs = []
    for _ in range(2):
        torch.manual_seed(0)
        attended = backend.attend(call)
        grad = torch.linspace(-1, 1, attended.numel(), device=device).view(attended.shape)
        runs.append((attended.detach(), torch.autograd.grad(attended, value, grad)[0]))
    (kept, of_value), again = runs
    share = float((kept > 0).float().mean())
    report.add(
        "Dropout", check="share kept of 0.75", value=f"{share:.4f}", passed=abs(share - 0.75) < 0.03
    )
    error = _relative(of_value, kept.double().mT @ grad.double())
    report.add(
        "Dropout", check="backward drops the same", value=f"{error:.1e}", passed=error < 1e-4
    )
    same = all(torch.equal(a, b) for a, b in zip(runs[0], again, strict=True))
    report.add("Dropout", check="two runs are equal bit by bit", value=same, passed=same)
