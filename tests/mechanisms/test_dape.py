"""DAPE: the authors' numbers, the network as loops, and what it may wrap."""

import itertools
import json
from pathlib import Path
from typing import Any

import pytest
import torch
from pydantic import ValidationError

from posattn.encoder.config import EncoderConfig
from posattn.mechanisms import DAPEConfig, EncoderDims
from posattn.testing.mechanism_case import MechanismCase

from .oracle import KEY_POSITIONS, QUERY_POSITIONS, far_call

GOLDEN = json.loads((Path(__file__).parent / "golden_dape.json").read_text())
HEADS = 2


def test_the_numbers_are_those_of_the_code_of_the_authors() -> None:
    case = MechanismCase("dape", {"mechanism": "alibi", "width": 3}, 8, HEADS)
    attention = case.attention()
    layer = attention.attention.position.parts["dape"]
    names = {"0": "inner", "2": "output"}
    for key, value in GOLDEN["weights"].items():
        index, part = key.split(".")
        parameter = getattr(getattr(layer, names[index]), part)
        parameter.data.copy_(torch.tensor(value))
    logits = torch.tensor(GOLDEN["logits"], dtype=torch.float64)
    places, hidden = torch.arange(4)[None], case.hidden(1, 4)
    call = attention.call(hidden, hidden, attention.prepared(places, places))
    bias = call.bias.parts()[0].materialize().double()  # alibi
    found = bias + layer(logits, bias)
    expected = torch.tensor(GOLDEN["added"], dtype=torch.float64)
    for h, i, j in itertools.product(range(HEADS), range(4), range(4)):
        if j <= i:  # theirs is causal
            assert found[0, h, i, j].item() == pytest.approx(expected[0, h, i, j].item(), abs=2e-6)


def test_the_bias_is_the_wrapped_one_and_the_network_written_as_loops() -> None:
    case = MechanismCase("dape", {"mechanism": "alibi", "width": 3}, 8, HEADS)
    attention, call = far_call(case)
    layer = attention.attention.position.parts["dape"]
    terms = {name: term.expand(2, HEADS, 4, 6) for name, term in call.bias.terms().items()}
    bare = far_call(MechanismCase("alibi", {}, 8, HEADS))[1].bias.terms()
    assert list(terms) == [*bare, "dape"]
    (name,) = bare
    assert torch.equal(terms[name], bare[name].expand(2, HEADS, 4, 6))
    logits = (call.query * call.scale) @ call.key.mT
    inner, output = layer.inner, layer.output
    for b, i, j in itertools.product(
        range(2), range(len(QUERY_POSITIONS)), range(len(KEY_POSITIONS))
    ):
        reads = [logits[b, h, i, j].item() for h in range(HEADS)]
        reads += [terms[name][b, h, i, j].item() for h in range(HEADS)]
        middle = []
        for row, shift in zip(inner.weight.tolist(), inner.bias.tolist(), strict=True):
            value = sum(w * x for w, x in zip(row, reads, strict=True)) + shift
            middle.append(value if value > 0 else 0.01 * value)
        for h in range(HEADS):
            row, shift = output.weight[h].tolist(), output.bias[h].item()
            expected = sum(w * x for w, x in zip(row, middle, strict=True)) + shift
            assert terms["dape"][b, h, i, j].item() == pytest.approx(expected, abs=1e-9)


def test_a_network_of_zeros_is_the_wrapped_mechanism() -> None:
    plain = MechanismCase("disentangled", {"p2p": True})
    case = MechanismCase("dape", {"mechanism": plain.config})
    model, bare = case.model(), plain.model()
    state = {
        key.replace(".mechanisms.disentangled.", ".mechanisms.dape.wrapped."): value
        for key, value in bare.state_dict().items()
    }
    missing, unexpected = model.load_state_dict(state, strict=False)
    assert not unexpected
    assert all(".parts.dape." in name for name in missing)
    for name in missing:
        model.get_parameter(name).data.zero_()
    ids = case.ids(2, 6)
    torch.testing.assert_close(model.encoder(ids), bare.encoder(ids))


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"mechanism": "rope"}, "'rope' adds none to the logits"),
        ({"mechanism": "dape"}, "cannot stand here"),
        ({"mechanism": {"name": "alibi", "layers": [1]}}, "layers belong to 'dape'"),
        ({"mechanism": {"name": "alibi", "slope": 1}}, "slope"),
    ],
)
def test_what_makes_no_sense_is_refused(options: dict[str, Any], text: str) -> None:
    with pytest.raises(ValidationError, match=text):
        EncoderConfig(mechanism={"name": "dape", **options})


def test_the_card_has_the_lines_of_the_wrapped_mechanism() -> None:
    card = DAPEConfig().card(EncoderDims(16, 4))
    assert card["wrapped"] == "alibi"
    assert "slopes" in card
    assert card["adapted by"].endswith("8 -> 32 -> 4, own in each layer")
