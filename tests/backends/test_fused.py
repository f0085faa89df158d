"""What is special about the C++ operator: blocks and tiles, which small calls do not reach."""

from dataclasses import replace

import pytest
import torch
from torch import Tensor

from posattn.backends import AttentionCall, EagerBackend, FusedBackend
from posattn.backends.fused.library import NativeLibrary
from posattn.bias import (
    AttentionBias,
    BucketScores,
    Causal,
    DenseBias,
    KeyProducts,
    KeyScores,
    Padding,
    QueryProducts,
    QueryScores,
    SameDocument,
    SumBias,
    Visibility,
    Window,
)
from posattn.positions import Distances, clipped, log_buckets

HEADS, WIDTH = 2, 8
GENERATOR = torch.Generator().manual_seed(0)
FUSED, EAGER = FusedBackend(), EagerBackend()


def random(*shape: int, dtype: torch.dtype = torch.float64) -> Tensor:
    noise = torch.randn(shape, generator=GENERATOR, dtype=torch.float64)
    return noise.to(dtype).requires_grad_()


def positions(queries: int, keys: int, batch: int = 1) -> Distances:
    """Return the distances of the last `queries` of a text to all its keys, or the other way round."""
    longest = torch.arange(max(queries, keys)).expand(batch, -1)
    return Distances(longest[:, -queries:], longest[:, -keys:])


def disentangled(distance: Distances, batch: int, dtype: torch.dtype) -> AttentionBias:
    """Return lookups by query and by key in log buckets, one by distance, and one of keys."""
    bucket = distance.mapped(lambda apart: log_buckets(apart, 32, 64) + 32)
    near = distance.mapped(lambda apart: clipped(apart, 5) + 5)
    queries, keys = distance.query_positions.shape[1], distance.key_positions.shape[1]
    return SumBias(
        (
            QueryScores("c2p", random(batch, HEADS, queries, 65, dtype=dtype), bucket),
            KeyScores("p2c", random(batch, HEADS, keys, 65, dtype=dtype), bucket),
            BucketScores("near", random(HEADS, 11, dtype=dtype), near),
            DenseBias("keys", random(batch, 1, 1, keys, dtype=dtype)),
        )
    )


def call(distance: Distances, batch: int = 1, dtype: torch.dtype = torch.float64) -> AttentionCall:
    queries, keys = distance.query_positions.shape[1], distance.key_positions.shape[1]
    return AttentionCall(
        query=random(batch, HEADS, queries, WIDTH, dtype=dtype),
        key=random(batch, HEADS, keys, WIDTH, dtype=dtype),
        value=random(batch, HEADS, keys, WIDTH, dtype=dtype),
        scale=0.3,
        bias=disentangled(distance, batch, dtype),
    )


def leaves(call: AttentionCall) -> list[Tensor]:
    """Return what the call learns."""
    assert call.bias is not None
    found = [call.query, call.key, call.value]
    for part in call.bias.parts():
        found.append(part.value if isinstance(part, DenseBias) else part.scores)  # type: ignore[attr-defined]
    return found


def assert_as_eager(call: AttentionCall, tolerance: float = 1e-10) -> None:
    given, expected = FUSED.attend(call), EAGER.attend(call)
    torch.testing.assert_close(given, expected, atol=tolerance, rtol=0)
    weights = torch.linspace(-1, 1, given.numel(), dtype=given.dtype).view(given.shape)
    learned = leaves(call)
    found = torch.autograd.grad((given * weights).sum(), learned)
    wanted = torch.autograd.grad((expected * weights).sum(), learned)
    for gradient, exact in zip(found, wanted, strict=True):
        torch.testing.assert_close(gradient, exact, atol=10 * tolerance, rtol=10 * tolerance)


@pytest.mark.parametrize(("queries", "keys"), [(150, 530), (300, 40), (16, 16), (1, 600)])
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32], ids=["double", "single"])
def test_calls_of_several_tiles_are_as_eager(queries: int, keys: int, dtype: torch.dtype) -> None:
    tolerance = 1e-10 if dtype == torch.float64 else 2e-5
    assert_as_eager(call(positions(queries, keys), batch=2, dtype=dtype), tolerance)


def test_positions_that_jump_and_fall_are_as_eager() -> None:
    places = torch.cat([torch.arange(40), torch.arange(30), torch.arange(90, 20, -1)])[None]
    assert_as_eager(call(Distances(places, places)))


def test_packed_documents_windows_and_padding_are_as_eager() -> None:
    documents = torch.tensor([0] * 50 + [1] * 70 + [2] * 80).expand(2, -1)
    places = torch.cat([torch.arange(50), torch.arange(70), torch.arange(80)]).expand(2, -1)
    keys = torch.ones(2, 200, dtype=torch.bool)
    keys[1, 150:] = False
    distance = Distances(places, places)
    packed = call(distance, batch=2)
    rules = (Padding(keys), SameDocument(documents, documents), Window(distance, 20))
    assert_as_eager(replace(packed, visibility=Visibility(rules)))
    assert_as_eager(replace(packed, visibility=Visibility((*rules, Causal(distance)))))


def test_a_second_lookup_by_query_and_other_positions_are_as_eager() -> None:
    first = call(positions(40, 40))
    assert first.bias is not None
    second = disentangled(positions(40, 40), 1, torch.float64)
    assert_as_eager(replace(first, bias=SumBias((first.bias, second))))


def test_dropout_is_the_same_in_both_directions() -> None:
    """With values of one the sum of an output row is the share kept; its gradient must be that share."""
    torch.manual_seed(0)
    dropping = replace(call(positions(60, 90)), dropout=0.4)
    state = torch.get_rng_state()
    attended = FUSED.attend(dropping)
    gradient = torch.autograd.grad(attended.sum(), dropping.value)[0]
    torch.set_rng_state(state)
    shifted = replace(dropping, value=dropping.value + 1)
    difference = (FUSED.attend(shifted) - attended).sum()
    torch.testing.assert_close(gradient.sum(), difference)


def test_dropout_has_the_gradient_of_what_it_computes() -> None:
    dropping = replace(call(positions(5, 7)), dropout=0.4)

    def attend(query: Tensor, key: Tensor, value: Tensor) -> Tensor:
        torch.manual_seed(3)
        return FUSED.attend(replace(dropping, query=query, key=key, value=value))

    assert torch.autograd.gradcheck(attend, (dropping.query, dropping.key, dropping.value))


def test_products_with_a_table_are_as_eager() -> None:
    distance = positions(150, 140)
    bucket = distance.mapped(lambda apart: log_buckets(apart, 32, 64) + 32)
    plain = call(distance, batch=2)
    tables = [random(HEADS, 65, WIDTH), random(HEADS, 65, WIDTH)]
    products = SumBias(
        (
            QueryProducts("c2p", plain.query, tables[0], bucket),
            KeyProducts("p2c", plain.key, tables[1], bucket),
        )
    )
    given = replace(plain, bias=products)
    learned = [plain.query, plain.key, *tables]
    found, expected = FUSED.attend(given), EAGER.attend(given)
    torch.testing.assert_close(found, expected, atol=1e-10, rtol=0)
    wanted = torch.autograd.grad(expected.square().sum(), learned)
    for gradient, exact in zip(
        torch.autograd.grad(found.square().sum(), learned), wanted, strict=True
    ):
        torch.testing.assert_close(gradient, exact, atol=1e-9, rtol=1e-9)


def test_without_a_compiler_it_refuses_and_says_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CXX", "no-such-compiler")
    reasons = NativeLibrary(is_known=lambda: False).problem()
    assert reasons is not None
    assert "'no-such-compiler' does not run" in reasons


def test_other_devices_and_whole_numbers_are_refused_with_the_reason() -> None:
    states = torch.zeros(1, 1, 2, 4, device="meta")
    assert FUSED.refusals(AttentionCall(states, states, states, 0.5)) == [
        "it runs on the CPU, not on 'meta'"
    ]
