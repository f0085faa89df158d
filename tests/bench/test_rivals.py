"""Rivals: with our weights, every one of them returns our states; a wrong one is found out."""

import importlib.util

import pytest
import torch

from posattn.bench.contestant import Contestant
from posattn.bench.entrant import Ours, share_weights
from posattn.bench.inputs import Inputs
from posattn.bench.measure import TOLERANCE
from posattn.bench.plan import ModelSize
from posattn.bench.subjects import subject, subjects
from posattn.errors import UnknownName

from .tiny import SIZE

CPU = torch.device("cpu")
THREE_LAYERS = ModelSize(**{**SIZE.model_dump(), "num_layers": 3})
PAIRS = [
    (name, rival)
    for name in subjects
    for rival in subjects.get(name).rivals
    if importlib.util.find_spec(rival.package) is not None and not rival().refusals(CPU)
]


TABLED = [pair for pair in PAIRS if pair[0] in ("disentangled", "learned", "t5", "transformer_xl")]


def label(value):
    return value if isinstance(value, str) else value.name


def states_of_both(name, rival, change=None, length=12, visible=None):
    ours = Ours(subject(name).options, "auto")
    both = [Contestant(one, THREE_LAYERS, "inference", CPU) for one in (ours, rival())]
    weights = ours.weights(both[0].model)
    subject(name).level(weights)
    share_weights(weights, both[1].entrant.weights(both[1].model), rival.name)
    if change is not None:
        with torch.no_grad():
            change(weights)
    ids = (torch.arange(2 * length) % 29 + 3).view(2, length)
    both[1].entrant.prepare(both[1].model, length)
    return [one.states(Inputs(ids, visible)) for one in both]


@pytest.mark.parametrize(("name", "rival"), PAIRS, ids=label)
def test_the_same_weights_give_the_same_states(name, rival):
    ours, theirs = states_of_both(name, rival)
    torch.testing.assert_close(theirs, ours, rtol=0, atol=TOLERANCE["float32"])


@pytest.mark.parametrize(
    ("name", "rival"), [pair for pair in PAIRS if not pair[1].no_padding], ids=label
)
def test_with_padding_the_states_of_real_tokens_are_the_same(name, rival):
    visible = torch.arange(12)[None] < torch.tensor([[12], [7]])
    ours, theirs = states_of_both(name, rival, visible=visible)
    assert ours.shape[0] == 19
    torch.testing.assert_close(theirs, ours, rtol=0, atol=TOLERANCE["float32"])


@pytest.mark.parametrize(
    "rival", [rival for name, rival in PAIRS if name == "disentangled"], ids=label
)
def test_past_the_largest_distance_of_deberta_the_states_are_the_same_too(rival):
    ours, theirs = states_of_both("disentangled", rival, length=600)
    torch.testing.assert_close(theirs, ours, rtol=0, atol=TOLERANCE["float32"])


@pytest.mark.parametrize(("name", "rival"), TABLED, ids=label)
def test_another_position_table_is_found_out(name, rival):
    def change(weights):
        for key, tensor in weights.items():
            if "position." in key and "norm" not in key:
                tensor.copy_(tensor.roll(1, 0))

    ours, theirs = states_of_both(name, rival, change)
    assert float((ours - theirs).abs().max()) > TOLERANCE["float32"]


def test_a_weight_that_the_rival_lacks_is_an_error_unless_it_is_neutral():
    have = {"tokens.weight": torch.zeros(2)}
    share_weights({**have, "x.bias": torch.zeros(1), "norm.weight": torch.ones(1)}, have, "other")
    with pytest.raises(ValueError, match=r"other has no weight .* 'layers.0.query_proj.weight'"):
        share_weights({"layers.0.query_proj.weight": torch.ones(1)}, have, "other")


def test_kernels_for_a_gpu_are_refused_on_a_cpu_and_what_is_missing_says_so(monkeypatch):
    kernels = {rival.name: rival() for rival in subjects.get("disentangled").rivals}
    assert "need a GPU" in kernels["flashdeberta"].refusals(CPU)[0]
    monkeypatch.setattr(kernels["disentangled-flash"], "package", "no_such_package")
    assert kernels["disentangled-flash"].refusals(CPU) == ["disentangled-flash is not installed"]


def test_a_mechanism_without_rivals_is_measured_in_berts_form():
    assert subject("kerple").title == "BERT"
    assert subject("kerple").rivals == ()
    with pytest.raises(UnknownName, match=r"'kerpel' \(known: .*kerple"):
        subject("kerpel")
