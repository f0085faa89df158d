"""How the logits of an attention layer depend on place when all tokens hold the same content.

The layer is the first of an encoder, with the mechanism's real code: content is a vector of ones, and query
and key projections are the identity, so that whatever differs between pairs comes from position. Each
head's mean at distance 0 is taken off, because softmax ignores a constant. Other projections and
tables, which training would fill, are drawn once from N(0, 1 / inputs) and N(0, 1).
"""

from dataclasses import dataclass
from typing import Any, final

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from posattn.backends import AttentionCall, logits_by_term
from posattn.encoder.decoders import PlainDecoderConfig
from posattn.encoder.init import named_generator
from posattn.encoder.model import MaskedLanguageModel
from posattn.recipe.example import example

HIDDEN_SIZE, NUM_HEADS = 64, 4
LENGTH = 65
SIDE = 13  # of a grid; odd, so that one cell is in the middle
ROUNDING = 1e-9


@final
@dataclass(frozen=True)
class Portrait:
    """Each logit against the head's mean at distance 0, and which keys each query sees."""

    added: Float[Tensor, "heads length length"]
    visible: Bool[Tensor, "heads length length"]

    def is_empty(self) -> bool:
        """Return whether position changes no logit and hides no key."""
        return not self.added.any() and bool(self.visible.all())

    def heads(self) -> list[int]:
        """Return the heads that differ: the first only if all are the same."""
        first_added, first_visible = self.added[:1], self.visible[:1]
        same = torch.allclose(self.added, first_added.expand_as(self.added), atol=1e-9)
        same = same and bool((self.visible == first_visible).all())
        return [0] if same else list(range(len(self.added)))


def draw_portrait(name: str) -> Portrait:
    """Return the portrait of a mechanism with the gallery's options; raises what its code raises."""
    return _draw(name, LENGTH)


def draw_offsets(name: str) -> Portrait:
    """Return the portrait of a mechanism on a grid of SIDE x SIDE cells, which its traits must name."""
    relation = {"name": "grid", "rows": SIDE, "columns": SIDE}
    return _draw(name, SIDE * SIDE, relation=relation)


def _draw(name: str, longest: int, **options: Any) -> Portrait:
    shape = {"hidden_size": HIDDEN_SIZE, "num_heads": NUM_HEADS, "embedding_norm": False}
    config = example(name, **shape, **options)
    limit = config.max_length()
    length = longest if limit is None else min(longest, limit)
    model = MaskedLanguageModel(config, PlainDecoderConfig(), vocab_size=2).double().eval()
    settle(model)
    calls: list[AttentionCall] = []
    with torch.no_grad():
        ids = torch.ones(1, length, dtype=torch.long)
        model(ids, observer=lambda call, content_term: calls.append(call))
    acting = next(layer for layer in range(len(calls)) if config.mechanism[0].acts_in(layer))
    return _portrait(calls[acting], length)


def _portrait(call: AttentionCall, length: int) -> Portrait:
    logits = sum(logits_by_term(call).values(), torch.zeros((), dtype=torch.float64))
    shape = (NUM_HEADS, length, length)
    logits_HQK = logits.expand(1, *shape)[0]
    added = logits_HQK - logits_HQK.diagonal(dim1=1, dim2=2).mean(-1)[:, None, None]
    added = added.where(added.abs() > ROUNDING, 0.0)
    pairs = call.visibility.pairs
    visible = torch.ones(shape, dtype=torch.bool) if pairs is None else pairs[0].expand(shape)
    return Portrait(added, visible)


def settle(model: MaskedLanguageModel) -> None:
    """Give every parameter the value that the portrait is drawn with."""
    with torch.no_grad():
        for prefix, part in model.named_modules():
            for name, parameter in part.named_parameters(prefix, recurse=False):
                noise = torch.randn(parameter.shape, generator=named_generator(0, name)).double()
                if name.endswith(("attention.query_proj.weight", "attention.key_proj.weight")):
                    parameter.copy_(torch.eye(len(parameter)))
                elif isinstance(part, nn.Linear) and not name.endswith("bias"):
                    parameter.copy_(noise * parameter.shape[1] ** -0.5)
                elif isinstance(part, nn.Linear):
                    parameter.zero_()
                elif isinstance(part, nn.Embedding) or not parameter.any():
                    parameter.copy_(noise)
        model.encoder.tokens.weight.fill_(1.0)
