import pytest
import torch

from posattn.errors import CheckpointError
from posattn.training.config import TrainConfig
from posattn.training.optimizer_state import load_optimizer, optimizer_tensors
from posattn.training.parameter_groups import group_parameters, make_optimizer
from posattn.training.weights import pack_tensors
from tests.training.tiny_run import TinyModel, tiny_positions


def make(width: int = 12) -> tuple[TinyModel, torch.optim.AdamW]:
    torch.manual_seed(0)
    model = TinyModel(width)
    groups = group_parameters(model, tiny_positions(model))
    return model, make_optimizer(model, groups, TrainConfig(learning_rate=0.1))


def take_step(model: TinyModel, optimizer: torch.optim.AdamW, factor: float) -> None:
    for number, parameter in enumerate(model.parameters()):
        parameter.grad = torch.full_like(parameter, factor * (number + 1)).cos()
    optimizer.step()


def test_an_optimizer_goes_on_bit_for_bit_from_its_tensors() -> None:
    model, optimizer = make()
    take_step(model, optimizer, 0.3)
    tensors = {name: tensor.clone() for name, tensor in optimizer_tensors(optimizer).items()}
    assert pack_tensors(tensors)
    other, fresh = make()
    other.load_state_dict(model.state_dict())
    load_optimizer(fresh, tensors)
    take_step(model, optimizer, 0.7)
    take_step(other, fresh, 0.7)
    for ours, theirs in zip(model.parameters(), other.parameters(), strict=True):
        assert torch.equal(ours, theirs)
    assert fresh.param_groups[0]["group"] == optimizer.param_groups[0]["group"]


def test_an_optimizer_without_a_step_has_no_tensors() -> None:
    assert optimizer_tensors(make()[1]) == {}


def test_the_state_of_another_model_is_refused() -> None:
    model, optimizer = make(width=16)
    take_step(model, optimizer, 0.3)
    with pytest.raises(CheckpointError, match="other shapes"):
        load_optimizer(make(width=12)[1], optimizer_tensors(optimizer))
    with pytest.raises(CheckpointError, match="unknown"):
        load_optimizer(make()[1], {"elsewhere/step": torch.tensor(1.0)})
