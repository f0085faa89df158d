"""What a sped-up encoder keeps and hands to its layers, beside the weights that stay where they are."""

from dataclasses import dataclass, field
from functools import cached_property
from typing import final

import torch
from jaxtyping import Num
from torch import Tensor, nn

from posattn.backends import AttentionBackend
from posattn.bias import Padding, Visibility
from posattn.mechanisms import DisentangledAttention, DisentangledConfig, EncoderDims
from posattn.mechanisms.disentangled import DisentangledLayer, Rows
from posattn.positions import Relation


@final
@dataclass
class EncoderPart:
    """The mechanism over an encoder's own table and norm (None without relative terms), and the backend."""

    mechanism: DisentangledAttention | None
    backend: AttentionBackend


@final
@dataclass
class AttentionPart:
    """One layer's share: the encoder's part, the layer's own projections, the factor on products."""

    encoder: EncoderPart
    scale: float
    layer: DisentangledLayer | None = None


@final
@dataclass(frozen=True)
class TokenMask:
    """Which tokens are text, where transformers hands its layers a tensor of all pairs."""

    tokens: Num[Tensor, "batch length"]
    visibility: Visibility = field(init=False)

    def __post_init__(self) -> None:
        """State once per forward what all layers share."""
        object.__setattr__(self, "visibility", Visibility((Padding(self.tokens.bool()),)))

    @cached_property
    def pairs(self) -> Tensor:
        """The mask of all pairs, as transformers builds it."""
        return self.tokens[:, None, None, :] * self.tokens[:, None, :, None]


@final
@dataclass(frozen=True)
class TokenDistances:
    """Rows of the relative table by distance, where transformers hands its layers a tensor of all pairs."""

    rows: Rows
    distance: Relation  # after clipping or bucketing

    @property
    def pairs(self) -> Tensor:
        """The distance of every pair, as transformers builds it."""
        return self.distance.pairs


def mechanism_over(
    config: DisentangledConfig, table: nn.Embedding, norm: nn.LayerNorm | None, num_heads: int
) -> DisentangledAttention:
    """Return the mechanism that reads an existing table through its norm; no weights are made."""
    with torch.device("meta"):
        made = DisentangledAttention(config, EncoderDims(table.embedding_dim, num_heads))
    made.table = table
    if norm is not None:
        made.table_norm = norm
    return made


def layer_over(
    mechanism: DisentangledAttention,
    dropout: nn.Dropout,
    key_proj: nn.Linear | None,
    query_proj: nn.Linear | None,
) -> DisentangledLayer:
    """Return a layer's part of the mechanism that has existing projections; no weights are made."""
    with torch.device("meta"):
        made = mechanism.make_layer()
    made.dropout = dropout
    if key_proj is not None:
        made.position_key_proj = key_proj
    if query_proj is not None:
        made.position_query_proj = query_proj
    return made
