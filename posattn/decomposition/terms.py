"""The named terms of an attention's logits for one text, with what they sum to and what softmax makes of it.

Softmax ignores what is added to all logits of a query, so `centred` takes off each query's mean over the keys
that it sees. Keys that it does not see are 0 there.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from posattn.backends import logits_by_term, probabilities
from posattn.decomposition.record import Attention

Pairs = Float[Tensor, "heads query key"]


@dataclass(frozen=True)
class Terms:
    """One attention of one text; keys are its tokens, memory in front of them is left out.

    `adds_values`: position also enters the attended values, which no term of the logits shows.
    """

    name: str
    terms: Mapping[str, Pairs]
    logits: Pairs
    probs: Pairs
    visible: Bool[Tensor, "heads query key"]
    adds_values: bool

    def centred(self, values: Pairs) -> Pairs:
        """Return the values less each query's mean over the keys it sees, in float64."""
        seen = self.visible.double()
        kept = values.double() * seen
        mean = kept.sum(-1, keepdim=True) / seen.sum(-1, keepdim=True).clamp(min=1)
        return (kept - mean) * seen


def terms_of(attention: Attention, row: int = 0) -> Terms:
    """Return the terms of one row of the batch; their sum is what the backend's softmax is taken of."""
    call = attention.call
    heads, length = call.query.shape[1], call.query.shape[2]
    shape = (call.query.shape[0], heads, length, call.key.shape[2])

    def of_row(values: Tensor) -> Tensor:
        return values.expand(shape)[row, :, :, -length:]

    named = logits_by_term(call, attention.content_term)
    terms = {name: of_row(values) for name, values in named.items()}
    pairs = call.visibility.pairs
    visible = torch.ones(shape, dtype=torch.bool) if pairs is None else pairs
    return Terms(
        name=attention.name,
        terms=terms,
        logits=sum(terms.values(), torch.zeros_like(next(iter(terms.values())))),
        probs=of_row(probabilities(call)),
        visible=of_row(visible).to(call.query.device),
        adds_values=call.relative_values is not None,
    )
