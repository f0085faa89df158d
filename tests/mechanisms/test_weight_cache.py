"""Projections of relative tables are kept in evaluation, and never a moment too long."""

import copy
import pickle
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from posattn.encoder.model import MaskedLanguageModel
from posattn.mechanisms.weight_cache import WeightCache
from posattn.testing.mechanism_case import MechanismCase

IDS = torch.tensor([[3, 1, 4, 1, 5]])


class Counted:
    """A cache of a weight, and how often its result was computed."""

    def __init__(self) -> None:
        self.linear = nn.Linear(64, 64)
        self.cache = WeightCache()
        self.calls = 0

    def get(self, key: Any = None) -> Tensor:
        return self.cache.get([self.linear.weight], self._compute, key)

    def _compute(self) -> Tensor:
        self.calls += 1
        return self.linear.weight * 2

    def is_right(self) -> bool:
        with torch.no_grad():
            return torch.equal(self.get(), self.linear.weight * 2)


@pytest.fixture
def counted() -> Counted:
    return Counted()


@torch.no_grad()
def test_the_result_is_computed_once(counted: Counted) -> None:
    assert counted.get() is counted.get()
    assert counted.calls == 1


def test_nothing_is_kept_while_gradients_are_recorded(counted: Counted) -> None:
    assert counted.get().requires_grad
    assert counted.get() is not counted.get()
    assert counted.calls == 3


@torch.no_grad()
def test_another_key_is_another_result(counted: Counted) -> None:
    counted.get(key=1)
    counted.get(key=2)
    counted.get(key=2)
    assert counted.calls == 2


def step(linear: nn.Linear) -> None:
    optimizer = torch.optim.AdamW(linear.parameters(), lr=0.1)
    with torch.enable_grad():
        linear(torch.ones(1, 64)).sum().backward()
    optimizer.step()


CHANGES: dict[str, Callable[[nn.Linear], object]] = {
    "an optimizer step": step,
    "load_state_dict": lambda linear: linear.load_state_dict(nn.Linear(64, 64).state_dict()),
    "an edit in place": lambda linear: linear.weight.mul_(3.0),
    "an edit of one number": lambda linear: linear.weight[0, 0].add_(1.0),
    "a cast": lambda linear: linear.double(),
    "a cast and back": lambda linear: linear.half().float(),
    "new data": lambda linear: setattr(linear.weight, "data", torch.ones(64, 64)),
    "a new parameter": lambda linear: setattr(linear, "weight", nn.Parameter(torch.ones(64, 64))),
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_changed_weight_is_seen(change: str) -> None:
    for _ in range(10):  # memory of freed tensors is reused by chance
        counted = Counted()
        assert counted.is_right()
        with torch.no_grad():
            CHANGES[change](counted.linear)
        assert counted.is_right()


@torch.no_grad()
def test_autocast_and_its_dtype_are_part_of_the_state() -> None:
    linear, cache, states = nn.Linear(8, 8), WeightCache(), torch.ones(1, 8)

    def get() -> torch.dtype:
        return cache.get([linear.weight], lambda: linear(states)).dtype

    assert get() == torch.float32
    for dtype in (torch.bfloat16, torch.float16):
        with torch.autocast("cpu", dtype=dtype):
            assert get() == dtype
    assert get() == torch.float32


def test_a_result_made_in_inference_mode_does_not_reach_ordinary_evaluation(
    counted: Counted,
) -> None:
    with torch.inference_mode():
        counted.get()
    with torch.no_grad():
        assert not counted.get().is_inference()


@torch.no_grad()
def test_copies_and_pickles_start_empty(counted: Counted) -> None:
    counted.get()
    for other in (copy.deepcopy(counted), pickle.loads(pickle.dumps(counted))):
        other.linear.weight.zero_()
        assert other.is_right()
        assert counted.is_right()
    assert counted.calls == 1


@torch.no_grad()
def test_clear_forgets(counted: Counted) -> None:
    counted.get()
    counted.cache.clear()
    counted.get()
    assert counted.calls == 2


def count_calls(module: nn.Module) -> list[int]:
    calls = [0]

    def count(*_: object) -> None:
        calls[0] += 1

    module.register_forward_hook(count)
    return calls


def own_projections(model: MaskedLanguageModel) -> list[nn.Module]:
    names = ("position_key_proj", "position_query_proj", "distance_proj")
    return [part for name, part in model.named_modules() if name.rsplit(".", 1)[-1] in names]


@pytest.mark.parametrize(
    ("name", "options"), [("disentangled", {"projections": "own"}), ("transformer_xl", {})]
)
def test_evaluation_skips_the_projection_and_training_does_not(
    name: str, options: dict[str, Any]
) -> None:
    model = MechanismCase(name, options).model()
    counts = [count_calls(projection) for projection in own_projections(model)]
    assert counts
    with torch.no_grad():
        first = model(IDS).hidden
        assert torch.equal(model(IDS).hidden, first)
    assert all(count == [1] for count in counts)
    with torch.no_grad():
        model(IDS.repeat(1, 2))  # other distances: other rows
    assert all(count == [2] for count in counts)
    model.train()
    model(IDS)
    model(IDS)
    assert all(count == [4] for count in counts)


def test_evaluation_with_shared_projections_projects_the_content_only() -> None:
    model = MechanismCase("disentangled").model()
    projection = model.encoder.layers[0].attention.key_proj
    count = count_calls(projection)
    with torch.no_grad():
        model(IDS)
        assert count == [1]  # the table; keys are part of one product with queries and values
        model(IDS)
        assert count == [1]
