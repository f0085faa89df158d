from typing import Any

import pytest
import torch
from torch import nn

from posattn.encoder.config import EncoderConfig
from posattn.encoder.decoders import PlainDecoderConfig
from posattn.encoder.model import MaskedLanguageModel, position_parameters
from posattn.errors import IncompatibleParts
from posattn.mechanisms import registry
from posattn.training.config import TrainConfig
from posattn.training.parameter_groups import (
    describe_parameters,
    group_parameters,
    make_optimizer,
    tensor_digest,
)
from tests.training.tiny_run import TinyModel, tiny_positions

OPTIONS: dict[str, Any] = {"xpos": {"name": "xpos", "causal": True}}  # refused by its bare name


def small_model(mechanism: Any) -> MaskedLanguageModel:
    config = EncoderConfig.model_validate(
        {"hidden_size": 16, "num_layers": 2, "num_heads": 2, "mechanism": mechanism}
    )
    return MaskedLanguageModel(config, PlainDecoderConfig(), 11)


@pytest.mark.parametrize("name", registry.names())
@pytest.mark.parametrize("decay_positions", [False, True])
def test_groups_cover_all_parameters_of_every_mechanism_once(
    name: str, decay_positions: bool
) -> None:
    model = small_model(OPTIONS.get(name, name))
    position = position_parameters(model)
    groups = group_parameters(model, position)
    config = TrainConfig(weight_decay=0.1, position_weight_decay=decay_positions)
    optimizer = make_optimizer(model, groups, config)
    members = [id(p) for group in optimizer.param_groups for p in group["params"]]
    assert sorted(members) == sorted(id(p) for p in model.parameters())
    decay = {group["group"]: group["weight_decay"] for group in optimizer.param_groups}
    norms = {
        f"{prefix}.{own}"
        for prefix, module in model.named_modules()
        if isinstance(module, nn.LayerNorm | nn.RMSNorm)
        for own, _ in module.named_parameters(recurse=False)
    }
    for parameter_name, parameter in model.named_parameters():
        group = groups[parameter_name]
        if parameter_name in norms or parameter.ndim < 2:
            assert (group, decay[group]) == ("no_decay", 0.0)
        elif parameter_name in position:
            assert (group, decay[group]) == ("position", 0.1 if decay_positions else 0.0)
        else:
            assert (group, decay[group]) == ("decay", 0.1)


def test_a_norm_with_an_unusual_name_and_shape_does_not_decay() -> None:
    model = nn.ModuleDict({"squash": nn.LayerNorm((3, 4)), "norm_like": nn.Linear(4, 4)})
    groups = group_parameters(model, set())
    assert groups == {
        "squash.weight": "no_decay",
        "squash.bias": "no_decay",
        "norm_like.weight": "decay",
        "norm_like.bias": "no_decay",
    }


def test_a_tied_parameter_is_in_one_group_only() -> None:
    groups = group_parameters(TinyModel(), {"places.weight"})
    assert groups["tokens.weight"] == "decay"
    assert groups["places.weight"] == "position"
    assert "readout.weight" not in groups


def test_a_frozen_parameter_is_left_out_of_the_optimizer() -> None:
    model = TinyModel()
    model.places.weight.requires_grad_(False)
    groups = group_parameters(model, tiny_positions(model))
    optimizer = make_optimizer(model, groups, TrainConfig())
    assert groups["places.weight"] == "frozen"
    assert all("places.weight" not in group["names"] for group in optimizer.param_groups)


def test_a_position_parameter_that_does_not_exist_is_an_error() -> None:
    with pytest.raises(IncompatibleParts, match="nowhere"):
        group_parameters(TinyModel(), {"nowhere"})


def test_description_counts_each_parameter_once_and_has_its_digest() -> None:
    model = TinyModel(width=12)
    position = set(tiny_positions(model))
    described = describe_parameters(model, group_parameters(model, position), position)
    assert described["total"] == sum(p.numel() for p in model.parameters())
    assert described["position"] == 8 * 12
    assert described["embedding"] == 30 * 12
    assert sum(described["groups"].values()) == described["total"]
    entry = described["tensors"]["places.weight"]
    assert entry["shape"] == [8, 12]
    assert entry["position"] is True
    assert entry["digest"] == tensor_digest(model.places.weight)


def test_digests_tell_values_shapes_and_types_apart() -> None:
    zeros = torch.zeros(2, 3)
    same = [zeros, torch.zeros(3, 2).T.contiguous()]
    others = [torch.zeros(3, 2), torch.zeros(2, 3, dtype=torch.int32), zeros + 1]
    assert len({tensor_digest(tensor) for tensor in same}) == 1
    assert len({tensor_digest(tensor) for tensor in [zeros, *others]}) == 4
    assert tensor_digest(torch.tensor(1.0, dtype=torch.bfloat16))
