"""The conformance suite of backends: each computes what eager computes, or refuses with reasons."""

from collections.abc import Callable
from dataclasses import replace
from functools import wraps
from itertools import product
from typing import TypeAlias

import torch
from torch import Tensor

from posattn.backends import AttentionBackend, AttentionCall, EagerBackend
from posattn.backends import registry as backends
from posattn.bias import BucketScores, DenseBias, Padding, RelativeValues, Visibility
from posattn.testing.backend_case import (
    BIAS_KINDS,
    NUM_BUCKETS,
    CallShape,
    Numbers,
    attend,
    finest,
    make_bias,
    visibilities,
)
from posattn.testing.checks import Check, CheckResult, bind, run_all, uncompiled
from posattn.testing.expect import ensure, ensure_close, ensure_differs, ensure_finite

BackendCheck: TypeAlias = Callable[[AttentionBackend], None]
EXACT = 1e-10
SINGLE = 1e-5


def check_every_bias_and_visibility_as_eager(backend: AttentionBackend) -> None:
    """Outputs and gradients are eager's for every kind of bias under every kind of visibility."""
    shape = CallShape()
    for kind in BIAS_KINDS:
        for name, visibility in visibilities(shape):

            def make(
                numbers: Numbers, kind: str = kind, visibility: Visibility = visibility
            ) -> AttentionCall:
                return numbers.call(shape, make_bias(kind, numbers, shape), visibility)

            _compare(backend, make, f"bias '{kind}', visible '{name}'")


def check_every_shape_as_eager(backend: AttentionBackend) -> None:
    """One query, one key, odd widths, more queries than keys: all as eager has them."""
    for queries, keys, width in ((1, 1, 1), (1, 6, 3), (5, 3, 8), (43, 43, 5), (8, 48, 16)):
        shape = CallShape(queries=queries, keys=keys, head_dim=width)

        def make(numbers: Numbers, shape: CallShape = shape) -> AttentionCall:
            return numbers.call(shape, make_bias("sum", numbers, shape))

        _compare(backend, make, f"{queries} queries, {keys} keys, head_dim {width}")


def check_relative_values_as_eager(backend: AttentionBackend) -> None:
    """What position adds to the values is added as eager adds it, or refused."""
    shape = CallShape()
    for name, visibility in visibilities(shape):

        def make(numbers: Numbers, visibility: Visibility = visibility) -> AttentionCall:
            table = numbers.leaf("table", NUM_BUCKETS, shape.head_dim)
            values = RelativeValues(table, (shape.bucket(),))
            return numbers.call(
                shape, make_bias("query scores", numbers, shape), visibility, values
            )

        _compare(backend, make, f"relative values, visible '{name}'")


def check_every_dtype_is_kept(backend: AttentionBackend) -> None:
    """The output has the dtype of the queries and is near to float64, whatever the bias's dtype."""
    shape = CallShape()
    visible = dict(visibilities(shape))["padding"]
    exact = _call_with_bias(Numbers(learns=False), shape, visible)
    expected = EagerBackend().attend(exact)
    tolerances = {
        torch.float64: EXACT,
        torch.float32: 1e-5,
        torch.float16: 5e-3,
        torch.bfloat16: 4e-2,
    }
    for dtype, tolerance in tolerances.items():
        for bias_dtype in (dtype, torch.float32):
            assert isinstance(exact.bias, DenseBias)
            call = replace(
                exact,
                query=exact.query.to(dtype),
                key=exact.key.to(dtype),
                value=exact.value.to(dtype),
                bias=DenseBias("bias", exact.bias.value.to(bias_dtype)),
            )
            attended = attend(backend, call)
            if attended is not None:
                ensure(attended.dtype == dtype, f"queries in {dtype} give {attended.dtype}")
                what = f"{dtype} with a bias in {bias_dtype}"
                slack = 1e-6 if bias_dtype != dtype else 0.0
                ensure_close(attended, expected, what, tolerance + slack)


def check_blind_queries_give_zeros(backend: AttentionBackend) -> None:
    """Queries that see no key get zeros, and no gradient anywhere is spoilt by them."""
    shape = CallShape(queries=4, keys=4)
    keys = torch.ones(2, 4, dtype=torch.bool)
    keys[1] = False
    for kind, learns in product(BIAS_KINDS, (True, False)):
        numbers = Numbers(finest(backend), learns)
        call = numbers.call(shape, make_bias(kind, numbers, shape), Visibility((Padding(keys),)))
        attended = attend(backend, call)
        if attended is None:
            continue
        ensure_close(
            attended[1], torch.zeros_like(attended[1]), f"bias '{kind}': blind queries", 0.0
        )
        if learns:
            torch.autograd.backward([attended[0].square().sum()])
        for name, leaf in numbers.leaves.items():
            if leaf.grad is not None:
                ensure_finite(leaf.grad, f"bias '{kind}': gradient of {name}")


def check_invisible_keys_do_not_matter(backend: AttentionBackend) -> None:
    """Huge keys, values and biases at invisible keys change no output."""
    shape = CallShape()
    for name, visibility in visibilities(shape):
        call = _call_with_bias(Numbers(finest(backend), learns=False), shape, visibility)
        pairs = visibility.pairs
        if pairs is None:
            continue
        hidden = ~pairs.expand(shape.batch, shape.heads, -1, -1).any(dim=2)[..., None]
        assert isinstance(call.bias, DenseBias)
        disturbed = replace(
            call,
            key=torch.where(hidden, 1e4, call.key),
            value=torch.where(hidden, 1e4, call.value),
            bias=DenseBias("bias", torch.where(pairs, call.bias.value, 1e4)),
        )
        before, after = attend(backend, call), attend(backend, disturbed)
        if before is not None and after is not None:
            ensure_close(after, before, f"huge values at keys hidden by '{name}'", _slack(before))


def check_half_precision_does_not_overflow(backend: AttentionBackend) -> None:
    """Queries and keys of 40 in float16, whose product is infinite unscaled, attend as in float64."""
    shape = CallShape(batch=1, heads=2, queries=3, keys=3, head_dim=64)
    full = torch.full((1, 2, 3, 64), 40.0, dtype=torch.float16)
    value = torch.arange(3.0)[None, None, :, None].expand(1, 2, 3, 64).half()
    scores = torch.tensor([[0.0, 1.0, 2.0, 0.5, 0.25]] * 2, dtype=torch.float16)
    bias = BucketScores("bias", scores, shape.bucket())
    call = AttentionCall(full, full, value, scale=(3 * 64) ** -0.5, bias=bias)
    attended = attend(backend, call)
    if attended is None:
        return
    logits = bias.materialize().double()  # the products are all equal, so they cancel
    # 7390 + 1 has a spacing of 4 in float16: only that the sum is finite can be asked of the bias
    ensure_finite(attended, "attended values of 40s in float16")
    plain = attend(backend, replace(call, bias=None))
    assert plain is not None
    ensure_close(plain, torch.ones_like(plain), "the mean of values 0, 1, 2 in float16", 2e-3)
    small = replace(call, query=full / 40, key=full / 40)
    attended = attend(backend, small)
    assert attended is not None
    expected = torch.softmax(logits, -1) @ value.double()
    ensure_close(attended, expected, "attended values in float16", 4e-3)


def check_layout_in_memory_does_not_matter(backend: AttentionBackend) -> None:
    """Transposed, expanded and strided inputs give what contiguous ones give."""
    shape = CallShape(batch=2, queries=6, keys=6)
    call = _call_with_bias(Numbers(finest(backend), learns=False), shape, Visibility(()))
    assert isinstance(call.bias, DenseBias)
    odd = replace(
        call,
        query=call.query.transpose(1, 2).contiguous().transpose(1, 2),
        key=torch.stack([call.key, call.value], -1)[..., 0],
        value=torch.cat([call.value, call.key], -1)[..., : shape.head_dim],
        bias=DenseBias("bias", call.bias.value[:1].expand(2, -1, -1, -1)),
    )
    tidy = replace(call, bias=DenseBias("bias", call.bias.value[:1].repeat(2, 1, 1, 1)))
    found, expected = attend(backend, odd), attend(backend, tidy)
    if found is not None and expected is not None:
        ensure_close(found, expected, "strided inputs", _slack(expected))


def check_dropout_is_honest(backend: AttentionBackend) -> None:
    """Without dropout calls are repeatable; with it they vary, and their mean is right."""
    shape = CallShape(batch=4, heads=4, queries=8, keys=8, head_dim=4)
    numbers = Numbers(torch.float32, learns=False)
    call = numbers.call(shape, make_bias("dense", numbers, shape))
    call = replace(call, value=torch.ones_like(call.value))
    dropping = replace(call, dropout=0.5)
    first, again = attend(backend, call), attend(backend, call)
    if first is None or again is None or attend(backend, dropping) is None:
        return
    ensure(torch.equal(first, again), "two calls without dropout differ")
    with torch.random.fork_rng(devices=[]), torch.no_grad():
        torch.manual_seed(0)
        runs = torch.stack([backend.attend(dropping) for _ in range(200)])
    ensure_differs(runs[0], runs[1], "two calls with dropout are equal, so nothing is dropped")
    mean = float(runs.mean())
    ensure(abs(mean - 1.0) <= 0.02, f"the mean over 200 runs with dropout is {mean:.4f}, not 1")


def check_inputs_are_left_alone(backend: AttentionBackend) -> None:
    """No tensor of the call is written to."""
    shape = CallShape()
    numbers = Numbers(finest(backend), learns=False)
    visible = dict(visibilities(shape))["all rules at once"]
    call = numbers.call(shape, make_bias("sum", numbers, shape), visible)
    before = {name: leaf.detach().clone() for name, leaf in numbers.leaves.items()}
    assert visible.pairs is not None
    pairs = visible.pairs.clone()
    attend(backend, call)
    for name, leaf in numbers.leaves.items():
        ensure(torch.equal(leaf, before[name]), f"{name} was changed in place")
    ensure(torch.equal(visible.pairs, pairs), "the visible pairs were changed in place")


CHECKS: tuple[BackendCheck, ...] = (
    check_every_bias_and_visibility_as_eager,
    check_every_shape_as_eager,
    check_relative_values_as_eager,
    check_every_dtype_is_kept,
    check_blind_queries_give_zeros,
    check_invisible_keys_do_not_matter,
    check_half_precision_does_not_overflow,
    check_layout_in_memory_does_not_matter,
    check_dropout_is_honest,
    check_inputs_are_left_alone,
)


def backend_checks(name: str) -> list[Check]:
    """Return every check of a registered backend, for parametrised tests.

    What a backend has `torch.compile` make runs uncompiled in them: they ask what is computed.
    """
    return [bind(_uncompiled(check), backends.get(name)()) for check in CHECKS]


def check_backend(name: str) -> list[CheckResult]:
    """Run all checks of a backend; raise one AssertionError that lists every failure, if any."""
    return run_all(f"backend '{name}'", backend_checks(name))


def _slack(found: Tensor) -> float:
    return EXACT if found.dtype == torch.float64 else SINGLE


def _uncompiled(check: BackendCheck) -> BackendCheck:
    @wraps(check)
    def run(backend: AttentionBackend) -> None:
        with uncompiled():
            check(backend)

    return run


def _call_with_bias(numbers: Numbers, shape: CallShape, visibility: Visibility) -> AttentionCall:
    return numbers.call(shape, make_bias("dense", numbers, shape), visibility)


def _compare(
    backend: AttentionBackend, make: Callable[[Numbers], AttentionCall], what: str
) -> None:
    """Compare in float64 with gradients, or where that is refused, in float32 without."""
    numbers = Numbers()
    call = make(numbers)
    expected = EagerBackend().attend(call)
    attended = attend(backend, call)
    if attended is None:
        attended = attend(backend, make(Numbers(torch.float32, learns=False)))
        if attended is not None:
            ensure_close(attended, expected, f"{what}, float32, inference", SINGLE)
        return
    ensure_close(attended, expected, what, EXACT)
    names, leaves = list(numbers.leaves), list(numbers.leaves.values())
    found = _gradients(attended, leaves)
    for name, gradient, wanted in zip(names, found, _gradients(expected, leaves), strict=True):
        ensure_close(gradient, wanted, f"{what}: gradient of {name}", EXACT)


def _gradients(attended: Tensor, leaves: list[Tensor]) -> tuple[Tensor, ...]:
    weights = torch.linspace(-1.0, 1.0, attended.numel(), dtype=attended.dtype)
    loss = (attended * weights.view(attended.shape)).sum()
    return torch.autograd.grad(loss, leaves, allow_unused=False)
