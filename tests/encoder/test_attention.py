import pytest
import torch

from posattn.backends import AutoBackend
from posattn.errors import BackendRefusal

from .small_models import MECHANISMS, ids, largest, model


def test_auto_records_what_it_chose() -> None:
    made = model("rope", backend="auto")
    backend = made.encoder.backend
    assert isinstance(backend, AutoBackend)
    assert backend.chosen == set()
    with torch.no_grad():
        made(ids(2, 5))
    assert backend.chosen
    assert backend.chosen <= {candidate.name for candidate in backend.candidates}


@torch.no_grad()
def test_auto_chooses_the_lowest_rank_that_does_not_refuse(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    made = model("rope", backend="auto")
    backend = made.encoder.backend
    made(ids(1, 4))
    assert backend.chosen == {"sdpa"}
    for candidate in backend.candidates:
        if candidate.name != "eager":
            monkeypatch.setattr(candidate, "refusals", lambda call: ["not today"])
    backend.chosen.clear()
    made(ids(1, 4))
    assert backend.chosen == {"eager"}


def test_a_named_backend_raises_with_its_reasons_and_is_never_replaced(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    made = model("rope", backend="sdpa")
    monkeypatch.setattr(made.encoder.backend, "refusals", lambda call: ["one", "two"])
    with pytest.raises(BackendRefusal, match="'sdpa' cannot run this attention: one; two"):
        made(ids(1, 4))


def test_all_layers_and_the_decoder_share_one_backend() -> None:
    made = model("rope", decode={"name": "emd", "share": "own", "kv": "n"})
    layers = [*made.encoder.layers, *made.decoder.layers]
    assert {id(layer.attention.backend) for layer in layers} == {id(made.encoder.backend)}


@torch.no_grad()
@pytest.mark.parametrize("name", [name for name in MECHANISMS if name != "shaw"])
def test_every_mechanism_that_leaves_values_alone_gives_the_same_logits_on_eager_and_sdpa(
    name: str,
) -> None:
    visible = torch.tensor([[True] * 7, [False, False, True, True, True, True, False]])
    eager, sdpa = (model(MECHANISMS[name], backend=backend) for backend in ("eager", "sdpa"))
    tokens = ids(2, 7)
    gap = largest(
        eager(tokens, visible=visible).logits[visible],
        sdpa(tokens, visible=visible).logits[visible],
    )
    assert gap < 2e-5
