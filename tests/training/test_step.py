from types import SimpleNamespace
from typing import Any

import pytest
import torch
from accelerate import Accelerator
from torch import Tensor, nn

from posattn.training.batches import Batch
from posattn.training.config import TrainConfig
from posattn.training.lanes import LaneMemory
from posattn.training.learner import make_scaler
from posattn.training.parameter_groups import group_parameters, make_optimizer
from posattn.training.schedule import make_schedule
from posattn.training.step import MAX_SKIPS_IN_A_ROW, Scaler, Stepper
from tests.training.tiny_run import TinyModel, make_batch


class FixedLoss(nn.Module):
    """A model whose loss per target is 2.0 on a batch with one target, and 1.0 on any other."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(1, 1, dtype=torch.float64))

    def forward(self, ids: Tensor, *, selected: Tensor, **unused: Any) -> SimpleNamespace:
        number = int(selected.sum())
        logits = torch.zeros(number, 4, dtype=torch.float64) + self.weight
        loss = torch.tensor(2.0 if number == 1 else 1.0, dtype=torch.float64)
        chance = torch.exp(-loss)
        right = torch.log(chance)
        wrong = torch.log((1 - chance) / 3)
        logits = logits + wrong
        logits[:, 2] = logits[:, 2] + right - wrong
        return SimpleNamespace(logits=logits, memory=None)


def make_stepper(
    model: nn.Module, scaler: Scaler | None = None, steps: int = 10, **train: Any
) -> Stepper:
    config = TrainConfig(**{"steps": steps, "clip_norm": None, "learning_rate": 0.1, **train})
    optimizer = make_optimizer(model, group_parameters(model, set()), config)
    accelerator = Accelerator(cpu=True)
    return Stepper(model, optimizer, make_schedule(config, steps), config, accelerator, scaler)


def targets_batch(number: int, token: int = 2, rows: int = 1, length: int = 9) -> Batch:
    ids = torch.full((rows, length), token)
    selected = torch.arange(length).expand(rows, -1) < number
    return make_batch(ids, selected)


def weights(model: nn.Module) -> list[Tensor]:
    return [parameter.detach().clone() for parameter in model.parameters()]


def same(first: list[Tensor], second: list[Tensor]) -> bool:
    return all(torch.equal(a, b) for a, b in zip(first, second, strict=True))


def test_one_target_of_loss_2_and_nine_of_loss_1_have_the_mean_11_tenths() -> None:
    model = FixedLoss()
    stepper = make_stepper(model)
    result = stepper.step([targets_batch(1), targets_batch(9)], 0, LaneMemory(model))
    assert result.targets == 10
    assert result.loss_sum / result.targets == pytest.approx(1.1, abs=1e-14)


def test_gradients_of_accumulation_equal_those_of_one_joined_batch() -> None:
    torch.manual_seed(0)
    model = TinyModel(dropout=0.0).double()
    ids = torch.arange(2, 10).repeat(4, 1) + torch.arange(4)[:, None]
    selected = torch.zeros(4, 8, dtype=torch.bool)
    selected[0, 0] = True
    selected[1:, :3] = True
    parts = [
        make_batch(ids[:1], selected[:1]), make_batch(ids[1:], selected[1:]),
    ]  # fmt: skip

    def gradients(batches: list[Batch]) -> list[Tensor]:
        stepper = make_stepper(model)
        total = sum(batch.num_targets for batch in batches)
        stepper._gradients(batches, 0, total, LaneMemory(model))
        found = [p.grad.clone() for p in model.parameters() if p.grad is not None]
        model.zero_grad()
        return found

    joined, accumulated = gradients([make_batch(ids, selected)]), gradients(parts)
    assert len(joined) == len(list(model.parameters()))
    for one, many in zip(joined, accumulated, strict=True):
        assert (one - many).abs().max() <= 1e-12


def test_a_step_without_targets_moves_nothing_and_does_not_count() -> None:
    torch.manual_seed(0)
    model = TinyModel(dropout=0.0)
    stepper = make_stepper(model, warmup_steps=4)
    before = weights(model)
    result = stepper.step([targets_batch(0, length=8)], 0, LaneMemory(model))
    assert (result.loss_sum, result.targets, result.moved, result.problem) == (0.0, 0, False, None)
    assert same(before, weights(model))
    assert not stepper.optimizer.state
    assert (stepper.taken, stepper.skipped) == (0, 1)
    first = stepper.step([targets_batch(2, length=8)], 1, LaneMemory(model))
    assert first.learning_rate == pytest.approx(0.1 / 4)


def test_a_step_is_seen_by_what_is_cached_until_weights_change() -> None:
    model = TinyModel()
    before = [parameter._version for parameter in model.parameters()]
    make_stepper(model).step([targets_batch(3, length=8)], 0, LaneMemory(model))
    after = [parameter._version for parameter in model.parameters()]
    assert all(new > old for new, old in zip(after, before, strict=True))


def test_an_empty_micro_batch_beside_a_normal_one_changes_nothing() -> None:
    torch.manual_seed(0)
    model = TinyModel(dropout=0.0)
    start = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    normal = targets_batch(3, length=8)
    make_stepper(model).step([normal], 0, LaneMemory(model))
    alone = weights(model)
    model.load_state_dict(start)
    result = make_stepper(model).step([targets_batch(0, length=8), normal], 0, LaneMemory(model))
    assert result.targets == 3
    assert same(alone, weights(model))


class SkippingScaler:
    """Skips the steps whose number (from 1) is in `skips`, as if their gradients had overflowed."""

    def __init__(self, *skips: int) -> None:
        self.skips = skips
        self.number = 0
        self.value = 1024.0

    def scale(self, outputs: Tensor) -> Tensor:
        return outputs * self.value

    def unscale_(self, optimizer: torch.optim.Optimizer) -> None:
        for group in optimizer.param_groups:
            for parameter in group["params"]:
                if parameter.grad is not None:
                    parameter.grad.div_(self.value)

    def step(self, optimizer: torch.optim.Optimizer) -> None:
        self.number += 1
        if self.number not in self.skips:
            optimizer.step()

    def update(self) -> None:
        if self.number in self.skips:
            self.value /= 2

    def get_scale(self) -> float:
        return self.value

    def state_dict(self) -> dict[str, Any]:
        return {"number": self.number, "value": self.value}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        self.number, self.value = state_dict["number"], state_dict["value"]


def test_the_schedule_counts_real_steps_only_and_skips_survive_a_checkpoint() -> None:
    torch.manual_seed(0)
    model = TinyModel(dropout=0.0)
    stepper = make_stepper(model, SkippingScaler(1, 3), steps=6, warmup_steps=4)
    rates = []
    for number in range(6):
        before = weights(model)
        result = stepper.step([targets_batch(3, length=8)], number, LaneMemory(model))
        assert result.moved != same(before, weights(model))
        if result.moved:
            rates.append(result.learning_rate)
        if number == 2:
            state = stepper.state()
            stepper = make_stepper(model, SkippingScaler(1, 3), steps=6, warmup_steps=4)
            stepper.load_state(state)
    assert rates == pytest.approx([0.1 / 4, 0.2 / 4, 0.3 / 4, 0.4 / 4])
    assert (stepper.taken, stepper.skipped) == (4, 2)
    assert stepper.state()["scaler"] == {"number": 6, "value": 256.0}


def test_a_scaler_that_only_skips_ends_the_run() -> None:
    model = TinyModel(dropout=0.0)
    stepper = make_stepper(model, SkippingScaler(*range(1, 99)))
    problems = [
        stepper.step([targets_batch(3, length=8)], number, LaneMemory(model)).problem
        for number in range(MAX_SKIPS_IN_A_ROW)
    ]
    assert problems[:-1] == [None] * (MAX_SKIPS_IN_A_ROW - 1)
    assert problems[-1] == f"the loss scaler skipped {MAX_SKIPS_IN_A_ROW} steps in a row"


@pytest.mark.parametrize(
    ("value", "problem"),
    [(float("nan"), "the loss is not a number"), (float("inf"), "the loss is")],
)
def test_a_loss_that_is_not_finite_moves_nothing(value: float, problem: str) -> None:
    model = TinyModel(dropout=0.0)
    with torch.no_grad():
        model.readout.bias[5] = value
    before = weights(model)
    result = make_stepper(model).step([targets_batch(3, length=8)], 0, LaneMemory(model))
    assert result.problem is not None
    assert result.problem.startswith(problem)
    assert all(
        torch.equal(a.nan_to_num(), b.nan_to_num())
        for a, b in zip(before, weights(model), strict=True)
    )


def test_a_gradient_that_is_not_finite_moves_nothing() -> None:
    model = TinyModel(dropout=0.0)
    model.inner.weight.register_hook(lambda gradient: gradient * float("inf"))
    before = weights(model)
    result = make_stepper(model, clip_norm=1.0).step(
        [targets_batch(3, length=8)], 0, LaneMemory(model)
    )
    assert result.problem is not None
    assert result.problem.startswith("the gradient is")
    assert same(before, weights(model))


def test_the_gradient_is_clipped_and_its_norm_before_that_is_returned() -> None:
    torch.manual_seed(0)
    model = TinyModel(dropout=0.0)
    seen = []
    stepper = make_stepper(model, clip_norm=0.01)
    stepper.optimizer.register_step_pre_hook(
        lambda *_: seen.append(
            torch.stack([p.grad.norm() for p in model.parameters() if p.grad is not None]).norm()
        )
    )
    result = stepper.step([targets_batch(3, length=8)], 0, LaneMemory(model))
    assert result.gradient_norm is not None
    assert result.gradient_norm > 0.02
    assert float(seen[0]) == pytest.approx(0.01, rel=1e-3)


@pytest.mark.parametrize("precision", ["bf16", "float16"])
def test_lower_precision_is_close_to_float32_and_keeps_weights_in_float32(precision: str) -> None:
    losses = []
    for chosen in ("float32", precision):
        torch.manual_seed(0)
        model = TinyModel(dropout=0.0)
        config = TrainConfig.model_validate({"precision": chosen})
        scaler = make_scaler(config, torch.device("cpu"))
        stepper = make_stepper(model, scaler, precision=chosen)
        results = [
            stepper.step([targets_batch(3, length=8)], number, LaneMemory(model))
            for number in range(5)
        ]
        losses.append(results[0].loss_sum / 3)
        assert all(p.dtype == torch.float32 for p in model.parameters())
        assert stepper.taken + stepper.skipped == 5
        assert stepper.taken >= 1, "a first scale that is too large is halved until it fits"
    assert losses[0] != losses[1]
    assert losses[0] == pytest.approx(losses[1], rel=0.05)
