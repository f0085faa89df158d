"""xformers is chosen for what it can and not for being there; its stand-ins here need no GPU (P-6)."""

import sys
from dataclasses import replace
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
import torch
from torch.testing import assert_close

from posattn.backends import AttentionCall, AutoBackend, EagerBackend, XformersBackend
from posattn.bias import Causal, DenseBias, Padding, SameDocument, Visibility
from posattn.positions import Distances

KEYS = torch.tensor([[True] * 5, [True, True, False, True, False], [False] * 5])
DOCUMENTS = torch.tensor([[0, 0, 1, 1, 1], [4, 4, 4, 2, 2], [0, 0, 0, 0, 0]])
RULES = {
    "everything": (),
    "padding": (Padding(KEYS),),
    "documents": (SameDocument(DOCUMENTS, DOCUMENTS),),
    "both": (Padding(KEYS), SameDocument(DOCUMENTS, DOCUMENTS)),
    "fewer queries": (Padding(KEYS), SameDocument(DOCUMENTS[:, 2:], DOCUMENTS)),
}


def call(rules: tuple[Any, ...] = (), queries: int = 5) -> AttentionCall:
    states = torch.randn(3, 3, 2, 5, 4, generator=torch.Generator().manual_seed(0))
    query, key, value = states
    return AttentionCall(query[:, :, -queries:], key, value, 0.4, visibility=Visibility(rules))


def installed(monkeypatch: pytest.MonkeyPatch, reasons: list[str], attention: Any) -> None:
    """Put a package in the place of xformers whose one operator gives these reasons."""
    operator = SimpleNamespace(NAME="fast", not_supported_reasons=lambda inputs: reasons)
    fmha: Any = ModuleType("xformers.ops.fmha")
    fmha.Inputs = lambda *inputs: inputs
    fmha.ALL_FW_OPS = fmha.ALL_BW_OPS = (operator,)
    blocks = SimpleNamespace(from_seqlens=lambda queries, keys: (queries, keys))
    fmha.attn_bias = SimpleNamespace(BlockDiagonalMask=blocks)
    fmha.memory_efficient_attention = attention
    monkeypatch.setitem(sys.modules, "xformers.ops.fmha", fmha)
    monkeypatch.setattr("posattn.backends.xformers.find_spec", lambda name: object())


def text_by_text(query: Any, key: Any, value: Any, attn_bias: Any, p: float, scale: float) -> Any:
    """Compute what xformers promises of a block-diagonal mask."""
    parts = zip(
        query[0].split(attn_bias[0]),
        key[0].split(attn_bias[1]),
        value[0].split(attn_bias[1]),
        strict=True,
    )
    found = []
    for q, k, v in parts:
        probs = torch.softmax(torch.einsum("qhd,khd->hqk", q * scale, k), -1)
        found.append(torch.einsum("hqk,khd->qhd", probs, v))
    return torch.cat(found)[None]


@pytest.mark.parametrize("name", RULES)
def test_texts_are_taken_apart_and_put_back_where_they_were(name, monkeypatch):
    installed(monkeypatch, [], text_by_text)
    asked = call(RULES[name], queries=3 if name == "fewer queries" else 5)
    assert_close(XformersBackend().attend(asked), EagerBackend().attend(asked))


def test_a_package_whose_operators_refuse_is_not_chosen_and_its_reasons_are_told(monkeypatch):
    installed(monkeypatch, ["device=cpu"], text_by_text)
    assert XformersBackend().refusals(call()) == [
        "no operator of the installed xformers runs this (device=cpu)"
    ]
    learning = replace(call(), query=call().query.requires_grad_())
    assert "device=cpu" in XformersBackend().refusals(learning)[0]
    auto = AutoBackend()
    auto.attend(call())
    assert auto.chosen == {"sdpa"}


def test_a_package_that_raises_when_called_is_not_chosen(monkeypatch):
    installed(monkeypatch, [], text_by_text)
    monkeypatch.setattr(sys.modules["xformers.ops.fmha"], "Inputs", lambda *_: 1 / 0)
    assert "cannot be used: ZeroDivisionError" in XformersBackend().refusals(call())[0]


def test_what_it_does_not_know_is_refused_and_not_dropped(monkeypatch):
    installed(monkeypatch, [], text_by_text)
    distance = Distances(torch.arange(5)[None], torch.arange(5)[None])
    asked = replace(call((Causal(distance),)), bias=DenseBias("b", torch.zeros(1, 1, 5, 5)))
    reasons = "; ".join(XformersBackend().refusals(asked))
    assert "without a bias" in reasons
    assert "not Causal" in reasons
