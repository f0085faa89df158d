"""What a mechanism adds to the logits of an attention layer when all tokens hold the same content.

The layer is the encoder's own, with the mechanism's real code: content is a vector of ones, query and
key projections are the identity, so the content product is one and the same for every pair, and
what is left after it is subtracted comes from position. Other projections and tables, which
training would fill, are drawn once from N(0, 1 / inputs) and N(0, 1).
"""

from dataclasses import dataclass
from typing import final

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from posattn.backends import logits_by_term
from posattn.backends import registry as backends
from posattn.encoder.attention import MultiHeadAttention
from posattn.encoder.config import EncoderConfig
from posattn.encoder.init import named_generator
from posattn.encoder.position import PositionStack
from posattn.mechanisms import Geometry

HIDDEN_SIZE, NUM_HEADS = 64, 4
LENGTH = 65


@final
@dataclass(frozen=True)
class Portrait:
    """What position adds to each logit, and which keys each query sees."""

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


class _Layer(nn.Module):
    """One attention layer in which the mechanism acts."""

    def __init__(self, config: EncoderConfig) -> None:
        super().__init__()
        part = config.mechanism[0]
        layer = next(index for index in range(config.num_layers) if part.acts_in(index))
        self.stack = PositionStack(config)
        self.attention = MultiHeadAttention(config, self.stack, layer, backends.get("eager")())


def draw_portrait(name: str) -> Portrait:
    """Return the portrait of a mechanism with its default options; raises what its code raises."""
    config = EncoderConfig.model_validate(
        {
            "hidden_size": HIDDEN_SIZE,
            "num_heads": NUM_HEADS,
            "hidden_dropout": 0.0,
            "attention_dropout": 0.0,
            "mechanism": name,
        }
    )
    limit = config.max_length()
    length = LENGTH if limit is None else min(LENGTH, limit)
    layer = _Layer(config).double().eval()
    settle(layer)
    with torch.no_grad():
        positions = torch.arange(length)[None]
        content = torch.ones(1, length, HIDDEN_SIZE, dtype=torch.float64)
        hidden = layer.stack.embed(content, positions)
        geometry = Geometry(positions, positions, length - 1)
        prepared = layer.stack.prepare(geometry, (), None)
        call = layer.attention.call(hidden, hidden, prepared)
        logits = sum(logits_by_term(call).values(), torch.zeros((), dtype=torch.float64))
        added = logits - call.scale * (HIDDEN_SIZE // NUM_HEADS)
        shape = (NUM_HEADS, length, length)
        pairs = call.visibility.pairs
        visible = torch.ones(shape, dtype=torch.bool) if pairs is None else pairs[0].expand(shape)
    return Portrait(added.expand(1, *shape)[0], visible)


def settle(layer: nn.Module) -> None:
    """Give every parameter the value that the portrait is drawn with."""
    with torch.no_grad():
        for prefix, part in layer.named_modules():
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
