"""DeBERTa v1 of transformers, sped up: query, key and value in one matrix, no bias of keys."""

from typing import Any, final

from einops import rearrange
from torch import Tensor
from transformers.models.deberta import modeling_deberta as theirs
from typing_extensions import override

from posattn.checkpoints.drop_in.host import Facts, Host
from posattn.checkpoints.drop_in.modules import SpedUpAttention, SpedUpEncoder
from posattn.mechanisms import ClippedDistances, Heads


@final
class Encoder(SpedUpEncoder, theirs.DebertaEncoder):
    """An encoder of transformers with distances per token."""

    transformers_class = theirs.DebertaEncoder


@final
class Attention(SpedUpAttention, theirs.DisentangledSelfAttention):
    """Attention of transformers through a backend of posattn."""

    transformers_class = theirs.DisentangledSelfAttention

    @override
    def split_heads(self, hidden_states: Tensor) -> Heads:
        split = "b l (h c) -> b h l c"
        found = rearrange(self.in_proj(hidden_states), split, h=self.num_attention_heads)
        query, key, value = found.chunk(3, dim=-1)
        query_bias, value_bias = (
            rearrange(bias, "(h d) -> h 1 d", h=self.num_attention_heads).to(key.dtype)
            for bias in (self.q_bias, self.v_bias)
        )
        return Heads(query + query_bias, key, value + value_bias)

    @override
    def content_projections(self) -> tuple[Any, Any]:
        return self.in_proj, self.in_proj  # not read: this version projects the table on its own

    @override
    def own_projections(self) -> tuple[Any, Any]:
        return own_projections(self)


def own_projections(attention: Any) -> tuple[Any, Any]:
    """Return the projections of the table; None for a term that is off."""
    return getattr(attention, "pos_proj", None), getattr(attention, "pos_q_proj", None)


@final
class DebertaHost(Host):
    """What is to be known of DeBERTa v1."""

    name = "DeBERTa v1"
    fast_encoder, fast_attention = Encoder, Attention

    @override
    def facts(self, encoder: Any, attention: Any) -> Facts:
        terms = attention.pos_att_type
        buckets = None
        if encoder.relative_attention:
            buckets = ClippedDistances(max_distance=encoder.max_relative_positions)
        return Facts(
            terms=frozenset(terms) & {"c2p", "p2c"},
            num_score_terms=1 + len(terms),
            buckets=buckets,
            is_shared=False,
            projections=own_projections(attention),
            norm=None,
        )

    @override
    def problems(self, attention: Any) -> list[str]:
        talks = attention.talking_head
        return ["talking_head mixes the logits of heads, which no backend does"] if talks else []
