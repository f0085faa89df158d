"""From the states of a text to one vector, and what a head does with it before the labels."""

from typing import Literal, TypeAlias, final

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn
from torch.nn import functional

from posattn.config import FrozenConfig
from posattn.encoder.config import EncoderConfig, Probability
from posattn.encoder.layer import activation, norm
from posattn.shapes import Hidden

Pooling: TypeAlias = Literal["first", "last", "mean", "max"]


class TransformConfig(FrozenConfig):
    """A projection and an activation, and perhaps a norm, before the labels."""

    activation: Literal["tanh", "gelu", "gelu_tanh", "relu", "silu"] = "tanh"
    dropout: Probability = 0.0  # before the projection
    bias: bool = True  # of the projection
    norm: bool = False  # after the activation, of the encoder's kind (ModernBERT)


@final
class Transform(nn.Module):
    """BERT's pooler, DeBERTa's context pooler, the first half of RoBERTa's classifier, ModernBERT's head."""

    def __init__(self, config: TransformConfig, encoder: EncoderConfig) -> None:
        """Build the projection, and the norm if there is one."""
        super().__init__()
        self.proj = nn.Linear(encoder.hidden_size, encoder.hidden_size, bias=config.bias)
        self.norm = norm(encoder) if config.norm else nn.Identity()
        self.activation = activation(config.activation)
        self.dropout = config.dropout

    def forward(self, pooled: Float[Tensor, "*any hidden"]) -> Float[Tensor, "*any hidden"]:
        """Return the vectors, projected and activated."""
        projected = self.proj(functional.dropout(pooled, self.dropout, self.training))
        return self.norm(self.activation(projected))


def pool(
    hidden: Hidden, visible: Bool[Tensor, "batch length"] | None, how: Pooling
) -> Float[Tensor, "batch hidden"]:
    """Return one vector per text: its first or last real token's, or mean or maximum over real tokens.

    A text without any real token gives zeros.
    """
    if visible is None:
        visible = torch.ones(hidden.shape[:2], dtype=torch.bool, device=hidden.device)
    if how in ("first", "last"):
        place = visible.long().argmax(1)
        if how == "last":
            place = visible.shape[1] - 1 - visible.flip(1).long().argmax(1)
        chosen = hidden[torch.arange(len(hidden), device=hidden.device), place]
        return chosen.masked_fill(~visible.any(1, keepdim=True), 0.0)
    if how == "max":
        largest = hidden.masked_fill(~visible[:, :, None], float("-inf")).amax(1)
        return largest.masked_fill(~visible.any(1, keepdim=True), 0.0)
    count = visible.sum(1, keepdim=True).clamp(min=1)
    return hidden.masked_fill(~visible[:, :, None], 0.0).sum(1) / count
