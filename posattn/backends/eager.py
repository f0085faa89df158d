"""Textbook attention: the definition that every other backend is held to."""

from collections.abc import Mapping
from typing import ClassVar, final

import torch
from torch.nn import functional
from typing_extensions import override

from posattn.backends.base import AttentionBackend, AttentionCall, backends
from posattn.shapes import Logits, QueryHeads


@final
@backends.register("eager")
class EagerBackend(AttentionBackend):
    """All logits at once, softmax in float32 or better, and then the weighted sum of the values."""

    name: ClassVar[str] = "eager"

    @override
    def refusals(self, call: AttentionCall) -> list[str]:
        return []

    @override
    def run(self, call: AttentionCall) -> QueryHeads:
        probs = probabilities(call)
        if call.dropout > 0:
            probs = functional.dropout(probs, call.dropout)
        attended = probs @ call.value
        if call.relative_values is not None:
            attended = attended + call.relative_values.attended(probs)
        return attended


def logits_by_term(call: AttentionCall, content_term: str = "content") -> Mapping[str, Logits]:
    """Return the scaled query-key scores under `content_term`, and each term of the bias by its name.

    Where a rotation acts and says what it does at distance 0, the scores there are `content_term` and
    what turning adds to them is `rotation`; the two sum to the scores.
    """
    scores_BHQK = (call.query * call.scale) @ call.key.mT
    terms: dict[str, Logits] = {content_term: scores_BHQK}
    if call.resting is not None:
        query, key = call.resting
        content_BHQK = (query * call.scale) @ key.mT
        terms = {content_term: content_BHQK, "rotation": scores_BHQK - content_BHQK}
    if call.bias is not None:
        terms.update(call.bias.terms())
    return terms


def probabilities(call: AttentionCall) -> Logits:
    """Return the attention probabilities; zero for invisible keys and for queries that see no key."""
    logits_BHQK = (call.query * call.scale) @ call.key.mT
    if call.bias is not None:
        logits_BHQK = logits_BHQK + call.bias.materialize().to(logits_BHQK.dtype)
    visible = call.visibility.pairs
    if visible is None:
        return _softmax(logits_BHQK)
    lowest = torch.finfo(logits_BHQK.dtype).min
    probs = _softmax(logits_BHQK.masked_fill(~visible, lowest))
    return probs.masked_fill(~visible, 0.0)


def _softmax(logits: Logits) -> Logits:
    exact = torch.promote_types(logits.dtype, torch.float32)
    return torch.softmax(logits, dim=-1, dtype=exact).to(logits.dtype)
