"""The continuous relative bias against its network, number by number."""

import math
from typing import Any

import pytest
import torch
from pydantic import ValidationError
from torch import nn

from posattn.encoder.config import EncoderConfig
from posattn.mechanisms import EncoderDims, MLPBias, MLPBiasConfig
from posattn.mechanisms.mlp import DistanceNetwork
from posattn.testing.mechanism_case import MechanismCase

from .oracle import KEY_POSITIONS, QUERY_POSITIONS, assert_terms, far_call, layer_norm, linear

SWIN = {
    "coordinate": "swin",
    "max_distance": 6,
    "bound": 16.0,
    "activation": "relu",
    "output_bias": False,
}


def coordinate(distance: int, options: dict[str, Any]) -> float:
    sign, size = math.copysign(1.0, distance), abs(distance)
    if options.get("coordinate") == "log":
        return sign * math.log(1 + size)
    if options.get("coordinate") == "swin":
        return sign * math.log2(1 + 8 * size / options["max_distance"]) / 3
    return float(distance)


def by_hand(network: nn.Module, distance: int, options: dict[str, Any]) -> list[float]:
    assert isinstance(network, DistanceNetwork)
    row = [[coordinate(distance, options)]]
    for inner, norm in zip(network.inner, network.norms, strict=True):
        row = linear(row, inner)
        if options.get("norm"):
            row = layer_norm(row, norm)
        if options.get("activation") == "relu":
            row = [[max(x, 0.0) for x in row[0]]]
        else:
            row = [[x / (1 + math.exp(-x)) for x in row[0]]]
    output = linear(row, network.output)[0]
    if "bound" in options:
        return [options["bound"] / (1 + math.exp(-x)) for x in output]
    return output


@pytest.mark.parametrize("share", ["encoder", "layer"])
@pytest.mark.parametrize(
    "options",
    [
        {"coordinate": "log"},
        {"coordinate": "log", "depth": 3, "norm": True, "width": 5},
        {"depth": 1, "output_bias": False},
        SWIN,
    ],
    ids=["log", "deep and normed", "linear", "swin"],
)
def test_the_bias_is_the_network_written_as_loops(options: dict[str, Any], share: str) -> None:
    attention, call = far_call(MechanismCase("mlp", {**options, "share": share}, 16, 4))
    if share == "encoder":
        network = attention.stack.mechanisms["mlp"].network
    else:
        network = attention.attention.position.parts["mlp"]
    expected = [
        [
            [by_hand(network, query - key, options)[h] for key in KEY_POSITIONS]
            for query in QUERY_POSITIONS
        ]
        for h in range(4)
    ]
    assert_terms(call, {"distance": [expected, expected]})


def test_layers_have_their_own_network_only_if_asked() -> None:
    def owned(**options: Any) -> set[str]:
        names = dict(MechanismCase("mlp", options).model().named_parameters())
        return {name for name in names if ".output.weight" in name and "mlp" in name}

    assert owned() == {"encoder.position.mechanisms.mlp.network.output.weight"}
    assert owned(share="layer") == {
        f"encoder.layers.{layer}.attention.position.parts.mlp.output.weight" for layer in (0, 1)
    }


def test_a_shared_network_runs_once_per_forward() -> None:
    model, calls = MechanismCase("mlp").model(), []
    network = model.encoder.position.mechanisms["mlp"].network
    network.register_forward_hook(lambda *_: calls.append(1))
    model.encoder(MechanismCase("mlp").ids(2, 5))
    assert len(calls) == 1


def test_a_bound_holds_the_bias_at_any_distance() -> None:
    mechanism = MLPBias(MLPBiasConfig.model_validate(SWIN), EncoderDims(16, 4))
    found = mechanism.network(torch.tensor([[-1e4], [0.0], [1e4]]))
    assert bool(((found >= 0) & (found <= 16.0)).all())


@pytest.mark.parametrize("options", [{"coordinate": "swin"}, {"max_distance": 8}])
def test_max_distance_goes_with_swin_and_nothing_else(options: dict[str, Any]) -> None:
    with pytest.raises(ValidationError, match="coordinate: swin, which needs it"):
        EncoderConfig(mechanism={"name": "mlp", **options})


def test_the_card_tells_the_network() -> None:
    card = MLPBiasConfig.model_validate(SWIN).card(EncoderDims(16, 4))
    assert card["network"] == "1 -> 4 -> 4 -> 4, relu, 16 x sigmoid, shared by all layers"
    assert "over 6, log-spaced" in card["positions"]
