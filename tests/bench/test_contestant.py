"""Timing: a time ends when the result has been read, whatever computes it and whenever."""

import threading
import time

import pytest
import torch

from posattn.bench.contestant import Contestant
from posattn.bench.inputs import Inputs

from .tiny import SIZE, made


class Late(torch.Tensor):
    """A result that a thread still computes; whoever reads it waits for the thread."""

    thread: threading.Thread | None = None

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        for argument in args:
            if type(argument) is Late and argument.thread is not None:
                argument.thread.join()
        return super().__torch_function__(func, types, args, kwargs or {})


def late(states: torch.Tensor) -> torch.Tensor:
    result = states.detach().as_subclass(Late)
    result.thread = threading.Thread(target=time.sleep, args=(0.02,))
    result.thread.start()
    return result


def contestant(function, stage="inference"):
    return Contestant(made("made", function)(), SIZE, stage, torch.device("cpu"))


def test_work_that_goes_on_after_the_call_returns_is_in_the_time():
    ids = Inputs(torch.ones(1, 4, dtype=torch.long), None)
    assert contestant(late).timed(ids) >= 0.02


def test_a_training_step_has_its_backward_pass_in_the_time():
    class Slow(torch.autograd.Function):
        @staticmethod
        def forward(ctx, states):
            return states.clone()

        @staticmethod
        def backward(ctx, gradient):
            time.sleep(0.02)
            return gradient

    ids = Inputs(torch.ones(1, 4, dtype=torch.long), None)
    slow = contestant(Slow.apply, "training")
    assert slow.timed(ids) >= 0.02
    assert slow.model.weight.grad is not None
    assert contestant(Slow.apply).timed(ids) < 0.02


@pytest.mark.parametrize(
    ("precision", "dtype"), [("float32", torch.float32), ("bf16", torch.bfloat16)]
)
def test_products_are_in_the_precision_asked_for(precision, dtype):
    seen = []

    def product(states):
        seen.append((states @ states.mT).dtype)
        return states

    one = Contestant(
        made("made", product)(), SIZE, "inference", torch.device("cpu"), precision=precision
    )
    one.timed(Inputs(torch.ones(1, 4, dtype=torch.long), None))
    assert seen == [dtype]


@pytest.mark.parametrize("stage", ["inference", "training"])
def test_what_is_at_padding_is_neither_compared_nor_learned_from(stage):
    ids = torch.tensor([[3, 4, 5], [6, 7, 7]])
    visible = torch.tensor([[True, True, True], [True, False, False]])
    one = contestant(lambda states: states, stage)
    inputs = Inputs(ids, visible)
    table = one.model.weight
    assert torch.equal(one.states(inputs), table[torch.tensor([3, 4, 5, 6])])
    one.timed(inputs)
    if stage == "training":
        assert table.grad[7].abs().max() == 0
        assert table.grad[6].abs().max() > 0
