"""Rotary angles stretched to longer texts: formulas as loops in float64, and YaRN's known constants."""

import math
from typing import Any

import pytest
import torch
from pydantic import ValidationError

from posattn.encoder.config import EncoderConfig
from posattn.mechanisms import EncoderDims, Geometry, Heads, RotaryConfig, RotaryPositions
from posattn.testing.mechanism_case import MechanismCase

from .test_rope import WIDTH, random_heads

BASE = 500.0
SCALINGS: dict[str, dict[str, Any]] = {
    "linear": {"factor": 3.0},
    "ntk": {"factor": 4.0},
    "dynamic_ntk": {"factor": 2.0, "original_length": 5},
    "yarn": {"factor": 4.0, "original_length": 64},
}
POSITIONS = [0, 1, 7, 19]


def turned(positions: list[int], **options: Any) -> torch.Tensor:
    mechanism = RotaryPositions(RotaryConfig.model_validate(options), EncoderDims(2 * WIDTH, 2))
    places, states = torch.tensor([positions]), random_heads(len(positions))
    prepared = mechanism.prepare(Geometry(places, places))
    return mechanism.rotate(Heads(states, states, states), prepared).query


def frequency(kind: str, t: int, width: int, length: int) -> float:
    """Return the frequency of pair t, as the docstring has it."""
    options = SCALINGS[kind]
    s, plain = options["factor"], BASE ** (-2 * t / width)
    if kind == "linear":
        return plain / s
    if kind == "dynamic_ntk":
        s = s * max(length, options["original_length"]) / options["original_length"] - (s - 1)
    if kind != "yarn":
        return (BASE * s ** (width / (width - 2))) ** (-2 * t / width)

    def dim(rotations: float) -> float:
        turns = options["original_length"] / (2 * math.pi * rotations)
        return width * math.log(turns) / (2 * math.log(BASE))

    low, high = max(math.floor(dim(32.0)), 0), min(math.ceil(dim(1.0)), width - 1)
    ramp = min(max((t - low) / (high - low), 0.0), 1.0)
    return plain / s * ramp + plain * (1 - ramp)


@pytest.mark.parametrize("kind", SCALINGS)
@pytest.mark.parametrize("layout", ["half", "interleaved"])
def test_pairs_turn_by_the_scaled_angle(kind: str, layout: str) -> None:
    scaling = {"kind": kind, **SCALINGS[kind]}
    found = turned(POSITIONS, base=BASE, layout=layout, scaling=scaling)
    states, size = random_heads(len(POSITIONS)), 0.1 * math.log(4.0) + 1 if kind == "yarn" else 1.0
    for index, position in enumerate(POSITIONS):
        for t in range(WIDTH // 2):
            pair = (t, t + WIDTH // 2) if layout == "half" else (2 * t, 2 * t + 1)
            angle = position * frequency(kind, t, WIDTH, POSITIONS[-1] + 1)
            for b in range(2):
                for h in range(2):
                    x, y = (float(states[b, h, index, channel]) for channel in pair)
                    first = size * (x * math.cos(angle) - y * math.sin(angle))
                    second = size * (y * math.cos(angle) + x * math.sin(angle))
                    assert float(found[b, h, index, pair[0]]) == pytest.approx(first, abs=1e-12)
                    assert float(found[b, h, index, pair[1]]) == pytest.approx(second, abs=1e-12)


def test_yarn_has_its_published_attention_factor_and_an_explicit_one_is_final() -> None:
    yarn = {"kind": "yarn", "factor": 4.0, "original_length": 512}
    assert RotaryConfig(scaling=yarn).scaling.amplitude() == pytest.approx(1.1386294, abs=1e-7)
    explicit = RotaryConfig(scaling={**yarn, "attention_factor": 1.2})
    assert explicit.scaling.amplitude() == 1.2
    without = turned(POSITIONS, scaling={**yarn, "attention_factor": 1.0})
    torch.testing.assert_close(turned(POSITIONS, scaling=explicit.scaling), 1.2 * without)


def test_yarn_scales_queries_and_keys_but_not_values() -> None:
    yarn = {"kind": "yarn", "factor": 4.0, "original_length": 512}
    config = RotaryConfig(rotate_value=True, scaling=yarn)
    mechanism = RotaryPositions(config, EncoderDims(2 * WIDTH, 2))
    states, places = random_heads(3), torch.arange(3)[None]
    prepared = mechanism.prepare(Geometry(places, places))
    found = mechanism.rotate(Heads(states, states, states), prepared)
    torch.testing.assert_close(found.query, found.value * config.scaling.amplitude())
    torch.testing.assert_close(found.value.norm(dim=-1), states.norm(dim=-1))


def test_each_option_of_yarn_changes_the_angles() -> None:
    def of(**options: Any) -> torch.Tensor:
        scaling = {"kind": "yarn", "factor": 4.0, "original_length": 100, **options}
        config = RotaryConfig.model_validate({"scaling": scaling})
        return config.scaling.frequencies(64, BASE, lambda: torch.tensor([[1]]))

    for option in ({"beta_fast": 4.0}, {"beta_slow": 2.0}, {"truncate": False}):
        assert not torch.allclose(of(**option), of())


def test_dynamic_ntk_is_plain_up_to_the_original_length_and_remembers_nothing() -> None:
    case = MechanismCase(
        "rope", {"scaling": {"kind": "dynamic_ntk", "factor": 2.0, "original_length": 6}}
    )
    model, plain = case.model(), MechanismCase("rope").model()
    short, long = case.ids(1, 6), case.ids(1, 9)
    with torch.no_grad():
        before = model.encoder(short)
        assert torch.equal(before, plain.encoder(short))
        assert not torch.allclose(model.encoder(long), plain.encoder(long))
        assert torch.equal(model.encoder(short), before)
    assert model.state_dict().keys() == plain.state_dict().keys()


def test_dynamic_ntk_reads_the_length_of_each_text_and_not_of_the_batch() -> None:
    case = MechanismCase(
        "rope", {"scaling": {"kind": "dynamic_ntk", "factor": 2.0, "original_length": 2}}
    )
    model, ids = case.model(), case.ids(1, 9)
    visible = torch.arange(9)[None] < torch.tensor([[9], [4]])
    padded = model.encoder(ids.expand(2, -1), visible=visible)
    packed = model.encoder(ids, documents=torch.tensor([[0] * 5 + [1] * 4]))
    torch.testing.assert_close(padded[1, :4], model.encoder(ids[:, :4])[0])
    torch.testing.assert_close(packed[:, 5:], model.encoder(ids[:, 5:]))


@pytest.mark.parametrize(
    ("mechanism", "text"),
    [
        ({"scaling": {"kind": "linear", "factor": 0.5}}, "greater than or equal to 1"),
        ({"scaling": {"kind": "linear", "factor": 2.0, "original_length": 8}}, "original_length"),
        ({"scaling": {"kind": "dynamic_ntk", "factor": 2.0}}, "original_length"),
        ({"scaling": {"kind": "cubic", "factor": 2.0}}, "'linear', 'ntk', 'dynamic_ntk', 'yarn'"),
        ({"scaling": {"kind": "ntk", "factor": 2.0}, "fraction": 0.25}, "more than 2 rotated"),
        (
            {"scaling": {"kind": "yarn", "factor": 2.0, "original_length": 8}, "base": 1.0},
            "base above 1",
        ),
        (
            {
                "scaling": {
                    "kind": "yarn",
                    "factor": 2.0,
                    "original_length": 8,
                    "beta_fast": 1.0,
                    "beta_slow": 32.0,
                }
            },
            "beta_fast 1 must be more than beta_slow 32",
        ),
    ],
)
def test_options_that_make_no_sense_are_refused(mechanism: dict[str, Any], text: str) -> None:
    with pytest.raises(ValidationError, match=text):
        EncoderConfig(hidden_size=16, num_heads=2, mechanism={"name": "rope", **mechanism})


def test_the_card_states_the_scaling() -> None:
    config = RotaryConfig(scaling={"kind": "yarn", "factor": 4.0, "original_length": 512})
    line = config.card(EncoderDims(64, 1))["scaling"]
    assert line == "yarn, factor 4 over length 512, betas 32 and 1, queries and keys x 1.13863"
