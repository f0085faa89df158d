import pytest
import torch

from posattn.backends import AttentionCall

from .small_models import MECHANISMS, config, decoder, ids, largest, model

SELECTED = torch.tensor(
    [[False, True, False, True, True, False, False], [False] * 7, [True] + [False] * 6]
)


@torch.no_grad()
@pytest.mark.parametrize("placement", ["post", "pre"])
@pytest.mark.parametrize("name", MECHANISMS)
def test_running_the_last_layer_at_selected_places_equals_running_it_everywhere(
    name: str, placement: str
) -> None:
    norm = {"placement": placement}
    some = model(MECHANISMS[name], {"name": "plain", "decode": "masked_only"}, norm=norm)
    all_places = model(MECHANISMS[name], {"name": "plain", "decode": "all"}, norm=norm)
    tokens = ids(3, 7)
    chosen = some(tokens, selected=SELECTED)
    assert chosen.logits.shape == (4, 13)
    assert largest(chosen.logits, all_places(tokens, selected=SELECTED).logits) < 2e-5
    assert largest(chosen.logits, some(tokens).logits[SELECTED]) < 2e-5
    assert largest(chosen.hidden, some(tokens).hidden[SELECTED]) < 2e-5


@torch.no_grad()
@pytest.mark.parametrize(
    ("decode", "queries"), [("masked_only", [7, 3]), ("all", [7, 7])], ids=["masked only", "all"]
)
def test_the_last_layer_has_only_as_many_queries_as_it_must(
    decode: str, queries: list[int]
) -> None:
    made = model("rope", {"name": "plain", "decode": decode})
    calls: list[AttentionCall] = []
    made(ids(3, 7), selected=SELECTED, observer=lambda call, term: calls.append(call))
    assert [call.query.shape[2] for call in calls] == queries
    assert [call.key.shape[2] for call in calls] == [7, 7]


@torch.no_grad()
@pytest.mark.parametrize("decode", ["plain", "emd"])
def test_nothing_selected_gives_no_logits_and_finite_gradients(decode: str) -> None:
    made = model("disentangled", decode)
    with torch.enable_grad():
        output = made(ids(3, 7), selected=torch.zeros(3, 7, dtype=torch.bool))
        assert output.logits.shape == (0, 13)
        output.logits.sum().backward()
    gradients = [p.grad for p in made.parameters() if p.grad is not None]
    assert all(bool(torch.isfinite(gradient).all()) for gradient in gradients)


def test_the_layers_that_run_are_counted() -> None:
    encoder = config(num_layers=5)
    assert decoder("plain").layer_runs(encoder) == (4, 1)
    assert decoder({"name": "plain", "decode": "all"}).layer_runs(encoder) == (5, 0)
