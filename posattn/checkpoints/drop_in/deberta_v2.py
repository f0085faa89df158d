"""DeBERTa v2 and v3 of transformers, sped up: projections apart, the table normalised once per forward."""

from typing import Any, final

from einops import rearrange
from torch import Tensor
from transformers.models.deberta_v2 import modeling_deberta_v2 as theirs
from typing_extensions import override

from posattn.checkpoints.drop_in.host import Facts, Host
from posattn.checkpoints.drop_in.modules import SpedUpAttention, SpedUpEncoder
from posattn.mechanisms import ClippedDistances, Heads, LogBuckets


@final
class Encoder(SpedUpEncoder, theirs.DebertaV2Encoder):
    """An encoder of transformers with distances per token."""

    transformers_class = theirs.DebertaV2Encoder


@final
class Attention(SpedUpAttention, theirs.DisentangledSelfAttention):
    """Attention of transformers through a backend of posattn."""

    transformers_class = theirs.DisentangledSelfAttention

    @override
    def split_heads(self, hidden_states: Tensor) -> Heads:
        query, key, value = (
            rearrange(projection(hidden_states), "b l (h d) -> b h l d", h=self.num_attention_heads)
            for projection in (self.query_proj, self.key_proj, self.value_proj)
        )
        return Heads(query, key, value)

    @override
    def content_projections(self) -> tuple[Any, Any]:
        return self.query_proj, self.key_proj

    @override
    def own_projections(self) -> tuple[Any, Any]:
        return own_projections(self)


def own_projections(attention: Any) -> tuple[Any, Any]:
    """Return the projections of the table where it has its own; None for a term that is off."""
    return getattr(attention, "pos_key_proj", None), getattr(attention, "pos_query_proj", None)


@final
class DebertaV2Host(Host):
    """What is to be known of DeBERTa v2 and v3."""

    name = "DeBERTa v2/v3"
    fast_encoder, fast_attention = Encoder, Attention

    @override
    def facts(self, encoder: Any, attention: Any) -> Facts:
        terms = frozenset(attention.pos_att_type) & {"c2p", "p2c"}
        return Facts(
            terms=terms,
            num_score_terms=1 + len(terms),
            buckets=self._buckets(encoder) if encoder.relative_attention else None,
            is_shared=attention.share_att_key,
            projections=own_projections(attention),
            norm=encoder.LayerNorm if "layer_norm" in encoder.norm_rel_ebd else None,
        )

    @override
    def problems(self, attention: Any) -> list[str]:
        return []

    def _buckets(self, encoder: Any) -> ClippedDistances | LogBuckets:
        if encoder.position_buckets < 1:
            return ClippedDistances(max_distance=encoder.max_relative_positions)
        return LogBuckets(
            num_buckets=encoder.position_buckets,
            max_distance=encoder.max_relative_positions,
            beyond=self.beyond,
        )
