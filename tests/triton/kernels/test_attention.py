"""The kernels, run by Triton's interpreter, against loops and eager attention in float64."""

from dataclasses import replace

import pytest
import torch

from posattn.backends import AttentionCall, EagerBackend, TritonBackend
from posattn.bias import (
    Causal,
    HeadDirections,
    Padding,
    QueryScores,
    SameDocument,
    Visibility,
    Window,
)
from posattn.positions import Distances
from tests.triton.kernels.calls import (
    ALL_PARTS,
    BUCKETS,
    TILE,
    assert_as_eager,
    by_loops,
    counted,
    in_dtype,
    make,
    tiles_by_kind,
)

DOCUMENTS = torch.tensor([[0] * 10 + [1] * 22 + [2] * 8])
RESTARTING = torch.cat([torch.arange(10), torch.arange(22), torch.arange(8)])[None]


@pytest.mark.parametrize("parts", [("p2c",), ("keys",), ALL_PARTS], ids="+".join)
def test_tiles_far_from_the_diagonal_and_near_it_are_as_eager(parts: tuple[str, ...]) -> None:
    backend = TritonBackend(TILE)
    assert_as_eager(make(counted(48), counted(48), parts=parts), backend)
    expected = [9, 0, 0, 0] if parts == ("keys",) else [1, 1, 7, 0]
    assert tiles_by_kind(backend) == expected


def test_lengths_that_leave_part_of_a_tile_are_as_eager() -> None:
    backend = TritonBackend(TILE)
    assert_as_eager(make(counted(35), counted(35)), backend)
    assert tiles_by_kind(backend) == [0, 1, 4, 4]


def test_queries_that_are_not_the_keys_are_as_eager() -> None:
    """A decoder's query stream, and queries after a memory."""
    chosen = torch.tensor([[3, 4, 9, 30, 31]])
    assert_as_eager(make(chosen, counted(33)), TritonBackend(TILE))
    assert_as_eager(make(counted(16, start=16), counted(32), heads=2), TritonBackend(TILE))


@pytest.mark.parametrize(
    ("name", "rules", "tiles"),
    [
        ("causal", lambda distance: [Causal(distance)], [0, 1, 2, 3]),
        ("window", lambda distance: [Window(distance, 7)], [0, 0, 0, 7]),
        ("directions", lambda distance: [HeadDirections(distance, 1, 2)], [1, 1, 4, 6]),
    ],
)
def test_hidden_tiles_are_skipped_and_the_rest_is_as_eager(name, rules, tiles) -> None:
    backend = TritonBackend(TILE)
    assert_as_eager(make(counted(48), counted(48), rules=rules, heads=2, parts=("c2p",)), backend)
    assert tiles_by_kind(backend) == tiles


def test_packed_documents_are_as_eager_and_hidden_from_each_other() -> None:
    backend = TritonBackend(TILE)
    rules = [SameDocument(DOCUMENTS, DOCUMENTS)]
    assert_as_eager(make(RESTARTING, RESTARTING, rules=lambda distance: rules), backend)
    assert sum(tiles_by_kind(backend)) == 5


def test_padding_on_either_side_is_as_eager() -> None:
    visible = torch.ones(2, 32, dtype=torch.bool)
    visible[0, :9] = False
    visible[1, 20:] = False
    at = (visible.long().cumsum(1) - 1).masked_fill(~visible, -1)
    assert_as_eager(make(at, at, rules=lambda distance: [Padding(visible)]), TritonBackend(TILE))


def test_positions_in_any_order_are_as_eager() -> None:
    at = torch.randperm(20, generator=torch.Generator().manual_seed(0))[None]
    assert_as_eager(make(at, at), TritonBackend(TILE))


def test_buckets_that_come_back_at_larger_distances_are_as_eager() -> None:
    made = make(counted(20), counted(20), function=lambda distance: distance.remainder(BUCKETS))
    assert_as_eager(made, TritonBackend(TILE))


def test_several_scores_of_one_kind_add_up() -> None:
    made = make(counted(17), counted(17), parts=("c2p", "p2p"))
    assert made.call.bias is not None
    c2p, p2p = made.call.bias.parts()
    doubled = replace(made.call.bias, summands=(c2p, p2p, c2p, p2p))
    made.call = replace(made.call, bias=doubled)
    assert_as_eager(made, TritonBackend())


@pytest.mark.parametrize("width", [8, 16, 24, 40, 64, 80, 96, 128])
def test_every_head_width_is_as_the_loops(width: int) -> None:
    """B-11: no column is left out, none is read beyond."""
    made = make(counted(5), counted(9), width=width, value_width=width, parts=("c2p", "p2c"))
    torch.testing.assert_close(TritonBackend().attend(made.call), by_loops(made.call))


@pytest.mark.parametrize("length", [1, 17, 63, 64, 65])
def test_every_length_of_the_cases_is_as_eager_at_width_24(length: int) -> None:
    """B-11, with gradients."""
    assert_as_eager(
        make(counted(length), counted(length), width=24, parts=("c2p", "p2c")), TritonBackend()
    )


def test_gradients_are_the_numeric_ones() -> None:
    made = make(counted(3), counted(4), width=24, parts=("c2p",))
    names = list(made.leaves)
    assert made.call.bias is not None
    bucket = made.call.bias.parts()[0].bucket

    def attend(*numbers: torch.Tensor) -> torch.Tensor:
        given = dict(zip(names, numbers, strict=True))
        bias = QueryScores("c2p", given.pop("c2p"), bucket)
        return TritonBackend().attend(replace(made.call, bias=bias, **given))

    assert torch.autograd.gradcheck(attend, tuple(made.leaves.values()), fast_mode=True)


@pytest.mark.parametrize("length", [1, 7, 8, 43, 48])
@pytest.mark.parametrize(
    ("dtype", "tolerance"), [(torch.float16, 5e-3), (torch.float32, 1e-5)], ids=["fp16", "fp32"]
)
def test_odd_lengths_in_lower_precision_are_near_float64(
    length: int, dtype: torch.dtype, tolerance: float
) -> None:
    """B-2: no row stride is special; scores stay in the type they came in."""
    made = make(counted(length), counted(length), parts=("keys", "p2c"))
    attended = TritonBackend().attend(in_dtype(made, dtype))
    assert attended.dtype == dtype
    expected = EagerBackend().attend(made.call)
    torch.testing.assert_close(attended.double(), expected, rtol=tolerance, atol=tolerance)


def test_views_give_what_contiguous_tensors_give() -> None:
    """B-3: transposed, strided and expanded inputs, and an expanded gradient."""
    made = make(counted(6).expand(2, -1), counted(6).expand(2, -1), heads=2, parts=("c2p",))
    call = made.call
    odd = replace(
        call,
        query=call.query.transpose(1, 2).contiguous().transpose(1, 2),
        key=torch.stack([call.key, call.value], -1)[..., 0],
        value=call.value[:1].expand(2, -1, -1, -1),
    )
    tidy = replace(call, value=call.value[:1].repeat(2, 1, 1, 1))
    leaves = list(made.leaves.values())
    found, expected = (TritonBackend().attend(one).sum() for one in (odd, tidy))
    torch.testing.assert_close(found, expected)
    for one, other in zip(
        torch.autograd.grad(found, leaves), torch.autograd.grad(expected, leaves), strict=True
    ):
        torch.testing.assert_close(one, other)


def test_scores_of_forties_in_half_precision_stay_finite() -> None:
    """N-2: the products are 102400 before they are scaled."""
    full = torch.full((1, 2, 3, 64), 40.0, dtype=torch.float16)
    value = torch.arange(3.0)[None, None, :, None].expand(1, 2, 3, 64).half()
    attended = TritonBackend().attend(AttentionCall(full, full, value, scale=192**-0.5))
    torch.testing.assert_close(attended, torch.ones_like(attended), rtol=2e-3, atol=2e-3)


def test_a_query_that_sees_nothing_gets_zeros_and_finite_gradients() -> None:
    """N-1: by padding, and by a window that its position lies far outside of."""
    visible = torch.tensor([[True] * 4, [False] * 4])
    made = make(
        counted(4).expand(2, -1), counted(4).expand(2, -1), rules=lambda _: [Padding(visible)]
    )
    attended = TritonBackend().attend(made.call)
    assert attended[1].eq(0).all()
    assert all(gradient.isfinite().all() for gradient in made.gradients(attended).values())


def drop(value: torch.Tensor, share: float, backend: TritonBackend) -> torch.Tensor:
    """Return 24 equally attended values with dropout."""
    zeros = torch.zeros(1, 2, 24, 8, dtype=value.dtype)
    return backend.attend(AttentionCall(zeros, zeros, value, 1.0, dropout=share))


def test_dropout_has_the_right_mean_and_follows_torch_s_seed() -> None:
    """B-1: over 1152 draws of 0.5, within three standard deviations."""
    value = torch.eye(24, dtype=torch.float64)[None, None].expand(1, 2, -1, -1)
    torch.manual_seed(0)
    first, second = (drop(value, 0.5, TritonBackend()) for _ in range(2))
    assert set((first * 24).round(decimals=6).unique().tolist()) == {0.0, 2.0}
    assert abs(float((first > 0).double().mean()) - 0.5) < 0.045
    assert not torch.equal(first, second)
    torch.manual_seed(0)
    assert torch.equal(first, drop(value, 0.5, TritonBackend()))


def test_backward_drops_what_forward_dropped_whatever_the_tiles() -> None:
    """The weights that a probe of unit values shows are the gradient's own."""
    value = torch.eye(24, dtype=torch.float64)[None, None].repeat(1, 2, 1, 1).requires_grad_()
    torch.manual_seed(0)
    attended = drop(value, 0.3, TritonBackend(TILE))
    kept = attended.detach()
    grad = torch.randn(attended.shape, generator=torch.Generator().manual_seed(1)).double()
    (of_value,) = torch.autograd.grad(attended, value, grad)
    torch.testing.assert_close(of_value, kept.mT @ grad)


def test_distances_are_compared_by_value_if_they_are_other_tensors() -> None:
    made = make(counted(6), counted(6), parts=("c2p", "p2c"))
    again = make(counted(6), counted(6), parts=("c2p", "p2c"))
    assert made.call.bias is not None
    assert again.call.bias is not None
    mixed = replace(
        made.call.bias, summands=(made.call.bias.parts()[0], again.call.bias.parts()[1])
    )
    call = replace(
        made.call, bias=mixed, visibility=Visibility((Causal(Distances(counted(6), counted(6))),))
    )
    torch.testing.assert_close(TritonBackend().attend(call), EagerBackend().attend(call))
