from typing import Any

import pytest
from pydantic import ValidationError

from posattn.training.config import TrainConfig


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"steps": 5, "epochs": 2}, "keep one and set the other to null"),
        ({"steps": None}, "neither steps nor epochs"),
        ({"warmup_steps": 5, "warmup_fraction": 0.1}, "keep one and set the other to null"),
        ({"steps": 5, "warmup_steps": 6}, r"warmup_steps \(6\) is more than steps \(5\)"),
        ({"schedule": "constant", "final_fraction": 0.1}, "no meaning for the constant schedule"),
        ({"warmup_steps": 1.0}, "valid integer"),
        ({"warmup_fraction": "10%"}, "valid number"),
        ({"learning_rate": float("nan")}, "finite"),
        ({"learning_rate": "1e-3"}, "valid number"),
        ({"betas": [0.9, 1.0]}, "less than 1"),
        ({"lr": 1e-3}, "Extra inputs are not permitted"),
        ({"precision": "fp8"}, "float32"),
    ],
)
def test_bad_values_are_refused(values: dict[str, Any], message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        TrainConfig.model_validate(values)


@pytest.mark.parametrize(
    "values", [{}, {"epochs": 3}, {"warmup_fraction": 0.1}, {"warmup_steps": 1}, {"data_seed": 5}]
)
def test_dump_and_load_give_the_same_config(values: dict[str, Any]) -> None:
    config = TrainConfig.model_validate(values)
    assert TrainConfig.model_validate(config.model_dump(mode="json")) == config


def test_epochs_take_the_place_of_the_default_steps() -> None:
    assert TrainConfig(epochs=3).steps is None


def test_data_follow_the_seed_unless_they_have_their_own() -> None:
    assert TrainConfig(seed=3).order_seed == 3
    assert TrainConfig(seed=3, data_seed=0).order_seed == 0
