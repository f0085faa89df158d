"""`inspect`: one text through a model, and what every attention of it consists of."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Int
from torch import Tensor

from posattn.decomposition.record import record
from posattn.decomposition.shares import Profile, Share, profiles, shares
from posattn.decomposition.terms import Terms, terms_of
from posattn.encoder.encoder import Encoder
from posattn.encoder.model import MaskedLanguageModel
from posattn.training.evaluate import evaluating

REACH = 16
SHOWN = 24
"""How many tokens a heat map shows, so that each can be read."""


@dataclass(frozen=True)
class Layer:
    """One attention: its terms, what they decide, how they go with distance."""

    terms: Terms
    shares: Mapping[str, Share]
    profiles: Mapping[str, Profile]

    @property
    def name(self) -> str:
        """Return `layer 1` or `decoder pass 1`."""
        return self.terms.name

    @property
    def heads(self) -> int:
        """Return the number of heads."""
        return len(self.terms.logits)

    def heat(self, name: str, head: int) -> list[list[float | None]]:
        """Return a centred term, or `logits`, of the first tokens; None where the key is invisible."""
        values = self.terms.logits if name == "logits" else self.terms.terms[name]
        centred = self.terms.centred(values)[head, :SHOWN, :SHOWN].tolist()
        visible = self.terms.visible[head, :SHOWN, :SHOWN].tolist()
        return [
            [value if seen else None for value, seen in zip(*row, strict=True)]
            for row in zip(centred, visible, strict=True)
        ]


@dataclass(frozen=True)
class Inspection:
    """One text in one model."""

    tokens: Sequence[str]
    layers: Sequence[Layer]

    def plain(self, heads: Sequence[int] | None = None) -> dict[str, Any]:
        """Return all numbers as plain data, with the heat maps of these heads (from 0) if any are named."""
        return {
            "tokens": list(self.tokens),
            "layers": [_plain(layer, heads) for layer in self.layers],
        }


def inspect(
    model: MaskedLanguageModel | Encoder,
    ids: Int[Tensor, " length"],
    tokens: Sequence[str],
    reach: int = REACH,
) -> Inspection:
    """Return the attentions of one text, with profiles up to `reach` tokens to either side.

    The model runs as it does in training, without dropout; `tokens` are the spellings of `ids`.
    """
    weight = (model if isinstance(model, Encoder) else model.encoder).tokens.weight
    ids = ids.to(weight.device)[None]
    layers = []
    with evaluating(model), torch.inference_mode():
        for attention in record(model, ids, segments=torch.zeros_like(ids)).attentions:
            terms = terms_of(attention)
            layers.append(Layer(terms, shares(terms), profiles(terms, reach)))
    return Inspection(tuple(tokens), tuple(layers))


def _plain(layer: Layer, heads: Sequence[int] | None) -> dict[str, Any]:
    found: dict[str, Any] = {
        "name": layer.name,
        "adds_values": layer.terms.adds_values,
        "terms": {
            name: {"share": one.share, "size": one.size} for name, one in layer.shares.items()
        },
        "profiles": {
            name: {"distances": one.distances, "means": one.means}
            for name, one in layer.profiles.items()
        },
    }
    if heads is not None:
        names = [*layer.terms.terms, "logits"]
        found["heat"] = {
            f"head {head + 1}": {name: layer.heat(name, head) for name in names} for head in heads
        }
    return found
