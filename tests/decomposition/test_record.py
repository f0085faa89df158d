"""Recorded attentions: the same forward, the logits that softmax gets, and the names of layers."""

from typing import Any

import pytest
import torch
from torch import Tensor

from posattn.backends import eager
from posattn.decomposition import record, terms_of
from posattn.encoder.model import MaskedLanguageModel
from posattn.errors import IncompatibleParts
from tests.encoder.small_models import HEADS, MECHANISMS, ids, model

LENGTH = 7
ROTATING = ["rope", "rope, interleaved half", "rope, dynamic ntk", "xpos", "pope"]


def softmaxed(made: MaskedLanguageModel, tokens: Tensor, patch: Any) -> list[tuple[Tensor, Tensor]]:
    """Return the logits that the eager backend takes the softmax of, and what it makes of them."""
    seen: list[tuple[Tensor, Tensor]] = []
    usual = eager._softmax

    def spy(logits: Tensor) -> Tensor:
        seen.append((logits, usual(logits)))
        return seen[-1][1]

    with patch.context() as inner, torch.no_grad():
        inner.setattr(eager, "_softmax", spy)
        made(tokens)
    return seen


WITH_EMD = ("none", "disentangled", "rope")  # the decoder is the same for all mechanisms
CASES = [(name, "plain") for name in MECHANISMS] + [(name, {"name": "emd"}) for name in WITH_EMD]


@pytest.mark.parametrize(("name", "decode"), CASES)
def test_terms_sum_to_what_the_backend_takes_the_softmax_of(
    name: str, decode: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    made, tokens = model(MECHANISMS[name], decode, backend="eager").double(), ids(1, LENGTH)
    expected = softmaxed(made, tokens, monkeypatch)
    with torch.no_grad():
        found = record(made, tokens).attentions
    assert len(found) == len(expected) == (2 if decode == "plain" else 3)
    for attention, (logits, probs) in zip(found, expected, strict=True):
        terms = terms_of(attention)
        together = torch.stack([value.expand(HEADS, -1, -1) for value in terms.terms.values()])
        torch.testing.assert_close(terms.logits, together.sum(0), rtol=0, atol=1e-12)
        seen = terms.visible
        torch.testing.assert_close(terms.logits[seen], logits[0][seen], rtol=1e-10, atol=1e-10)
        assert torch.equal(terms.probs[seen], probs[0][seen])
        assert not terms.probs[~seen].any()


@pytest.mark.parametrize("backend", ["eager", "sdpa"])
@pytest.mark.parametrize("name", ["rope", "pope", "disentangled", "transformer_xl", "cope"])
def test_a_recorded_forward_returns_the_same_to_the_bit(name: str, backend: str) -> None:
    made, tokens = model(MECHANISMS[name], {"name": "emd"}, backend=backend), ids(2, LENGTH)
    with torch.no_grad():
        plain, recorded = made(tokens), record(made, tokens).output
    assert torch.equal(plain.logits, recorded.logits)
    assert torch.equal(plain.hidden, recorded.hidden)


@pytest.mark.parametrize("name", ROTATING)
@torch.no_grad()
def test_turning_adds_nothing_at_distance_0(name: str) -> None:
    made = model(MECHANISMS[name]).double()
    for attention in record(made, ids(1, LENGTH)).attentions:
        terms = terms_of(attention)
        assert list(terms.terms) == ["content", "rotation"]
        here = terms.terms["rotation"].diagonal(dim1=1, dim2=2)
        torch.testing.assert_close(here, torch.zeros_like(here), rtol=0, atol=1e-12)
        assert terms.terms["rotation"].abs().max() > 1e-3


@torch.no_grad()
def test_content_under_yarn_is_the_product_with_its_amplitude() -> None:
    yarn = {"kind": "yarn", "factor": 4.0, "original_length": 4, "attention_factor": 1.5}
    made = model({"name": "rope", "scaling": yarn}).double()
    projected: dict[str, Tensor] = {}
    attention = made.encoder.layers[0].attention
    with torch.no_grad():
        hidden = made.encoder.embed(ids(1, LENGTH), None, made.encoder.begin(ids(1, LENGTH)))
    for name in ("query_proj", "key_proj"):
        projected[name] = getattr(attention, name)(hidden)[0].view(LENGTH, HEADS, -1)
    width = projected["query_proj"].shape[-1]
    terms = terms_of(record(made, ids(1, LENGTH)).attentions[0])
    for head in range(HEADS):
        for i in range(LENGTH):
            for j in range(LENGTH):
                product = projected["query_proj"][i, head] @ projected["key_proj"][j, head]
                expected = float(product) * 1.5**2 / width**0.5
                assert float(terms.terms["content"][head, i, j]) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("decode", "names"),
    [
        ("plain", ["layer 1", "layer 2"]),
        ({"name": "emd"}, ["layer 1", "decoder pass 1", "decoder pass 2"]),
        ({"name": "emd", "kv": "n", "layers": 1}, ["layer 1", "layer 2", "decoder pass 1"]),
        (
            {"name": "emd", "kv": "n", "share": "own", "layers": 3},
            ["layer 1", "layer 2", *(f"decoder pass {n}" for n in (1, 2, 3))],
        ),
    ],
)
@torch.no_grad()
def test_passes_of_a_decoder_come_after_the_layers(decode: Any, names: list[str]) -> None:
    found = record(model("rope", decode), ids(1, LENGTH)).attentions
    assert [attention.name for attention in found] == names


@torch.no_grad()
def test_an_encoder_alone_has_its_layers() -> None:
    found = record(model("t5").encoder, ids(1, LENGTH))
    assert [attention.name for attention in found.attentions] == ["layer 1", "layer 2"]


@torch.no_grad()
def test_memory_in_front_of_the_text_is_left_out() -> None:
    made = model({"name": "transformer_xl", "memory_length": 3})
    terms = terms_of(record(made, ids(1, LENGTH)).attentions[0])
    assert terms.logits.shape == (HEADS, LENGTH, LENGTH)
    assert terms.visible.all()


def test_texts_taken_out_of_their_rows_are_refused() -> None:
    made = model("rope", unpad=True)
    visible = torch.arange(LENGTH)[None] < torch.tensor([[LENGTH], [3]])
    with pytest.raises(IncompatibleParts, match="set unpad to false"):
        record(made, ids(2, LENGTH), visible=visible)
    with torch.no_grad():
        assert len(record(made, ids(2, LENGTH)).attentions) == 2
