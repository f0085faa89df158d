"""What both versions of DeBERTa in transformers have in common once they are sped up.

An encoder or attention module of transformers stays the object it is; only its class changes to one of
the subclasses built on these, so weights, names, hooks and `isinstance` stay true. What posattn
has no form of (attention maps, states of its own for the queries, given relative positions, a mask of
pairs) runs through the methods of transformers.
"""

from abc import ABC, abstractmethod
from typing import Any, ClassVar

import torch
from einops import rearrange
from torch import Tensor, nn

from posattn.backends import AttentionCall
from posattn.checkpoints.drop_in.parts import (
    AttentionPart,
    EncoderPart,
    TokenDistances,
    TokenMask,
)
from posattn.mechanisms import Geometry, Heads, Site


class SpedUpEncoder(nn.Module):
    """Methods of an encoder that hands its layers values per token instead of tensors of all pairs."""

    transformers_class: ClassVar[type[nn.Module]]
    posattn_part: EncoderPart

    def get_attention_mask(self, attention_mask: Tensor) -> Tensor | TokenMask:
        """Return what layers take for a mask."""
        if attention_mask.dim() != 2:
            return super().get_attention_mask(attention_mask)  # type: ignore[misc]
        return TokenMask(attention_mask)

    def get_rel_pos(
        self,
        hidden_states: Tensor,
        query_states: Tensor | None = None,
        relative_pos: Tensor | None = None,
    ) -> Tensor | TokenDistances | None:
        """Return what layers take for relative positions."""
        mechanism = self.posattn_part.mechanism
        is_plain = query_states is None and relative_pos is None
        if mechanism is None or not is_plain or mechanism.table is not self.rel_embeddings:
            return super().get_rel_pos(hidden_states, query_states, relative_pos)  # type: ignore[misc]
        length = hidden_states.size(-2)
        positions = torch.arange(length, device=hidden_states.device)[None]
        geometry = Geometry(positions, positions, length - 1)
        distance = geometry.distance.mapped(mechanism.config.buckets.signed)
        return TokenDistances(mechanism.prepare(geometry), distance)


class SpedUpAttention(nn.Module, ABC):
    """The forward of an attention module whose softmax is computed by a backend of posattn."""

    transformers_class: ClassVar[type[nn.Module]]
    posattn_part: AttentionPart
    dropout: nn.Dropout

    def forward(
        self,
        hidden_states: Tensor,
        attention_mask: Any,
        output_attentions: bool = False,
        query_states: Tensor | None = None,
        relative_pos: Any = None,
        rel_embeddings: Tensor | None = None,
    ) -> tuple[Tensor, Tensor | None]:
        """Return the attended values, and the attention maps where they are asked for."""
        part = self.posattn_part
        is_plain = query_states is None and not output_attentions
        if not (is_plain and isinstance(attention_mask, TokenMask) and self._knows(relative_pos)):
            return super().forward(
                hidden_states,
                _of_pairs(attention_mask),
                output_attentions,
                query_states=query_states,
                relative_pos=_of_pairs(relative_pos),
                rel_embeddings=rel_embeddings,
            )
        heads = self.split_heads(hidden_states)
        call = AttentionCall(
            query=heads.query,
            key=heads.key,
            value=heads.value,
            scale=part.scale,
            bias=None if relative_pos is None else self._bias(heads, relative_pos),
            visibility=attention_mask.visibility,
            dropout=self.dropout.p if self.training else 0.0,
        )
        attended_BHQD = part.encoder.backend.attend(call)
        return rearrange(attended_BHQD, "b h q d -> b q (h d)"), None

    def _knows(self, relative_pos: Any) -> bool:
        """Return whether positions are as the encoder states them, and the projections those known."""
        if relative_pos is None:
            return self.posattn_part.layer is None
        layer = self.posattn_part.layer
        if layer is None or not isinstance(relative_pos, TokenDistances):
            return False
        names = ("position_key_proj", "position_query_proj")
        own = tuple(layer._modules.get(name) for name in names)
        return all(a is b for a, b in zip(own, self.own_projections(), strict=True))

    @abstractmethod
    def split_heads(self, hidden_states: Tensor) -> Heads:
        """Return queries, keys and values by head, as this version projects them."""

    @abstractmethod
    def content_projections(self) -> tuple[Any, Any]:
        """Return the projections of queries and keys, which serve the table where it is shared."""

    @abstractmethod
    def own_projections(self) -> tuple[Any, Any]:
        """Return the projections that make keys and queries of the table and nothing else, or None."""

    def _bias(self, heads: Heads, places: TokenDistances) -> Any:
        part = self.posattn_part
        assert part.layer is not None
        assert part.encoder.mechanism is not None
        part.layer.training = self.training
        query_proj, key_proj = self.content_projections()
        site = Site(heads, part.scale, places.rows, part.layer, query_proj, key_proj)
        return part.encoder.mechanism.bias(site)


def _of_pairs(given: Any) -> Any:
    """Return what transformers' own code takes."""
    return given.pairs if isinstance(given, TokenMask | TokenDistances) else given
