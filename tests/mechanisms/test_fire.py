"""FIRE's three forms against their formula; the causal one against DAPE's code; legal parameters."""

import itertools
import math
from typing import Any

import pytest
import torch
from torch import nn

from posattn.mechanisms import EncoderDims, Fire, FireConfig, Geometry
from posattn.mechanisms.fire import EPS, FireNetwork
from posattn.testing.mechanism_case import MechanismCase, PositionedAttention

from .golden import golden
from .oracle import KEY_POSITIONS, QUERY_POSITIONS, assert_terms, far_call, linear

HEADS = 2
FORMS = ["signed", "sign_input", "causal"]


def case_of(**options: Any) -> MechanismCase:
    return MechanismCase("fire", options, hidden_size=4 * HEADS, num_heads=HEADS)


def network_of(attention: PositionedAttention) -> FireNetwork:
    """Return the network that the attention layer uses."""
    mechanism = attention.stack.mechanisms["fire"]
    assert isinstance(mechanism, Fire)
    network = mechanism.network or attention.attention.position.parts["fire"]
    assert isinstance(network, FireNetwork)
    return network


def by_hand(network: FireNetwork, form: str, query: int, key: int) -> list[float]:
    """Return the bias of every head for one pair, number by number."""
    c, threshold = math.exp(network.log_c.item()), math.exp(network.log_threshold.item())
    distance = query - key
    place = query if form == "causal" else max(query, key)
    ratio = math.log(c * abs(distance) + 1) / (math.log(c * max(threshold, place) + 1) + EPS)
    sign = (distance > 0) - (distance < 0)
    states = {"causal": [ratio], "signed": [sign * ratio], "sign_input": [ratio, float(sign)]}[form]
    for index, layer in enumerate(network.linears):
        states = linear([states if index == 0 else [max(x, 0.0) for x in states]], layer)[0]
    return states


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"shared": True, "first_threshold": 5.0},
        {"hidden_layers": 1, "hidden_width": 3, "first_threshold": 100.0, "first_c": 2.0},
        {"hidden_layers": 3, "hidden_width": 4},
    ],
    ids=str,
)
def test_the_bias_is_the_formula_written_as_loops(form: str, options: dict[str, Any]) -> None:
    attention, call = far_call(case_of(form=form, **options))
    network = network_of(attention)
    assert len(network.linears) == options.get("hidden_layers", 2) + 1
    one: Any = torch.zeros(HEADS, len(QUERY_POSITIONS), len(KEY_POSITIONS)).tolist()
    pairs = itertools.product(enumerate(QUERY_POSITIONS), enumerate(KEY_POSITIONS))
    for (i, query), (j, key) in pairs:
        for head, value in enumerate(by_hand(network, form, query, key)):
            one[head][i][j] = value
    assert_terms(call, {"distance": [one, one]})


def known_network(form: str) -> tuple[FireNetwork, torch.Tensor]:
    """Return our network with the weights of DAPE's, and the bias that DAPE's gave."""
    known = golden("fire")
    weights = {name: torch.tensor(value).double() for name, value in known["weights"].items()}
    heads, width = weights["2.weight"].shape
    config = FireConfig(form=form, hidden_layers=1, hidden_width=width)
    network = FireNetwork(config, EncoderDims(4 * heads, heads)).double()
    renamed = {f"linears.{int(name[0]) // 2}{name[1:]}": value for name, value in weights.items()}
    logs = {"log_c": known["c"], "log_threshold": known["threshold"]}
    renamed |= {name: torch.tensor(value).double().log() for name, value in logs.items()}
    network.load_state_dict(renamed, strict=True)
    return network, torch.tensor(known["bias"])


@torch.no_grad()
@pytest.mark.parametrize("form", ["causal", "signed"])
def test_keys_to_the_left_have_the_bias_of_dapes_code(form: str) -> None:
    """The default is the published function there, number for number."""
    network, expected = known_network(form)
    positions = torch.arange(expected.shape[-1])
    distance = positions[:, None] - positions
    query, key = positions[:, None].expand_as(distance), positions.expand_as(distance)
    place = query if form == "causal" else torch.maximum(query, key)
    found = network(distance, place)
    left = (distance >= 0).expand_as(found)
    torch.testing.assert_close(found[left].float(), expected[left].float(), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("raw", [-30.0, -3.0, 3.0])
def test_any_c_and_threshold_give_a_finite_bias_and_a_gradient(form: str, raw: float) -> None:
    case = case_of(form=form, shared=True)
    network = network_of(case.attention())
    with torch.no_grad():
        network.log_c.fill_(raw)
        network.log_threshold.fill_(raw)
    positions = torch.arange(6)
    distance = positions[:, None] - positions
    place = torch.zeros_like(distance)  # at the start of a text the threshold decides
    bias = network(distance, place)
    assert bool(bias.isfinite().all())
    bias.square().sum().backward()
    before = {}
    for name in ("log_c", "log_threshold"):
        parameter = getattr(network, name)
        assert parameter.grad.isfinite()
        assert parameter.grad != 0.0
        before[name] = parameter.item()
    torch.optim.AdamW(network.parameters(), lr=0.01).step()
    assert all(getattr(network, name).item() != value for name, value in before.items())
    assert bool(network(distance, place).isfinite().all())


def test_sequences_that_differ_in_padding_share_the_pairs_that_the_network_sees() -> None:
    mechanism = Fire(FireConfig(shared=True), EncoderDims(8, 2))
    positions = torch.tensor([[0, 1, 2, 3, 4], [0, 1, 2, -1, -1], [-1, -1, 0, 1, 2]])
    places = mechanism.prepare(Geometry(positions, positions))
    assert places.distance.shape == (6, 6)
    gaps = positions[:, :, None] - positions[:, None]
    assert torch.equal(places.distance.flatten()[places.bucket.pairs], gaps)


def test_below_the_threshold_only_the_distance_counts_and_beyond_it_the_place_too() -> None:
    attention = case_of(first_threshold=50.0).attention()
    hidden = case_of().hidden(1, 4)

    def bias_at(shift: int) -> torch.Tensor:
        positions = torch.arange(4)[None] + shift
        bias = attention.call(hidden, hidden, attention.prepared(positions, positions)).bias
        assert bias is not None
        return bias.materialize()

    torch.testing.assert_close(bias_at(0), bias_at(20))
    assert (bias_at(0) - bias_at(500)).abs().max() > 1e-3


def test_layers_have_networks_of_their_own_or_share_one_that_runs_once() -> None:
    own = {n for n, _ in case_of().model(num_layers=3).named_parameters() if "log_c" in n}
    part = "attention.position.parts.fire.log_c"
    assert own == {f"encoder.layers.{layer}.{part}" for layer in range(3)}
    model = case_of(shared=True).model(num_layers=3)
    shared = {n for n, _ in model.named_parameters() if "log_c" in n}
    assert shared == {"encoder.position.mechanisms.fire.network.log_c"}
    seen = []
    model(case_of().ids(1, 5), observer=lambda call, _: seen.append(call.bias))
    assert len(seen) == 3
    assert all(bias is seen[0] for bias in seen)


def test_the_causal_form_hides_later_keys_and_the_others_none() -> None:
    assert far_call(case_of())[1].visibility.pairs is None
    assert far_call(case_of(form="sign_input"))[1].visibility.pairs is None
    pairs = far_call(case_of(form="causal"))[1].visibility.pairs
    assert pairs is not None
    expected = [[key <= query for key in KEY_POSITIONS] for query in QUERY_POSITIONS]
    assert pairs[0, 0].tolist() == expected


def test_the_card_names_form_and_network() -> None:
    card = FireConfig(form="sign_input", shared=True).card(EncoderDims(16, 4))
    assert "the pair's larger position, form sign_input" in card["positions"]
    assert card["network"] == "2 x 32 x 32 x 4, one for all layers"
    assert isinstance(Fire(FireConfig(), EncoderDims(16, 4)).make_layer(), nn.Module)
