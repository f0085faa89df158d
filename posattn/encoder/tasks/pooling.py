"""From the states of a text to one vector, and what a head does with it before the labels."""

from typing import Literal, TypeAlias, final

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn
from torch.nn import functional

from posattn.config import FrozenConfig
from posattn.encoder.config import EncoderConfig, Probability
from posattn.encoder.layer import activation
from posattn.shapes import Hidden

Pooling: TypeAlias = Literal["first", "mean", "max"]


class TransformConfig(FrozenConfig):
    """A projection and an activation between the pooled vector and the labels."""

    activation: Literal["tanh", "gelu", "gelu_tanh", "relu", "silu"] = "tanh"
    dropout: Probability = 0.0  # before the projection


@final
class Transform(nn.Module):
    """BERT's pooler, DeBERTa's context pooler, the first half of RoBERTa's classifier."""

    def __init__(self, config: TransformConfig, encoder: EncoderConfig) -> None:
        """Build the projection."""
        super().__init__()
        self.proj = nn.Linear(encoder.hidden_size, encoder.hidden_size)
        self.activation = activation(config.activation)
        self.dropout = config.dropout

    def forward(self, pooled: Float[Tensor, "*any hidden"]) -> Float[Tensor, "*any hidden"]:
        """Return the vectors, projected and activated."""
        return self.activation(self.proj(functional.dropout(pooled, self.dropout, self.training)))


def pool(
    hidden: Hidden, visible: Bool[Tensor, "batch length"] | None, how: Pooling
) -> Float[Tensor, "batch hidden"]:
    """Return one vector per text: its first real token's state, or mean or maximum over real tokens.

    A text without any real token gives zeros.
    """
    if visible is None:
        visible = torch.ones(hidden.shape[:2], dtype=torch.bool, device=hidden.device)
    if how == "first":
        first = visible.long().argmax(1)
        chosen = hidden[torch.arange(len(hidden), device=hidden.device), first]
        return chosen.masked_fill(~visible.any(1, keepdim=True), 0.0)
    if how == "max":
        largest = hidden.masked_fill(~visible[:, :, None], float("-inf")).amax(1)
        return largest.masked_fill(~visible.any(1, keepdim=True), 0.0)
    count = visible.sum(1, keepdim=True).clamp(min=1)
    return hidden.masked_fill(~visible[:, :, None], 0.0).sum(1) / count
