"""Multi-head attention: projections around the mechanisms of a layer and one backend."""

from collections.abc import Callable
from typing import TypeAlias, final

from einops import rearrange
from torch import nn

from posattn.backends import AttentionBackend, AttentionCall
from posattn.encoder.config import EncoderConfig
from posattn.encoder.position import (
    Arrangement,
    LayerPosition,
    PositionStack,
    Prepared,
    Projected,
)
from posattn.mechanisms import Heads
from posattn.shapes import KeyHidden, QueryHidden

Observer: TypeAlias = Callable[[AttentionCall, str], None]
"""Is told of every attention call and of the field's name for its query-key term."""


@final
class MultiHeadAttention(nn.Module):
    """Attention of `query_hidden` over `hidden`; knows neither mechanism nor backend by name."""

    def __init__(
        self, config: EncoderConfig, stack: PositionStack, layer: int, backend: AttentionBackend
    ) -> None:
        """Build the projections and the layer's part of each mechanism."""
        super().__init__()
        size, bias = config.hidden_size, config.projection_bias
        self.num_heads = config.num_heads
        self.dropout = config.attention_dropout
        self.query_proj = nn.Linear(size, size, bias=bias != "none")
        self.key_proj = nn.Linear(size, size, bias=bias == "all")
        self.value_proj = nn.Linear(size, size, bias=bias != "none")
        self.output_proj = nn.Linear(size, size, bias=bias != "none")
        self.position = LayerPosition(config, stack, layer)
        self.backend = backend

    def forward(
        self,
        query_hidden: QueryHidden,
        hidden: KeyHidden,
        prepared: Arrangement,
        observer: Observer | None = None,
    ) -> QueryHidden:
        """Return the attended values, projected."""

        def attend(projected: Projected, prepared: Prepared) -> QueryHidden:
            call = self._call(projected, prepared)
            if observer is not None:
                observer(call, self.position.content_term(prepared))
            return rearrange(self.backend.attend(call), "b h q d -> b q (h d)")

        return self.output_proj(prepared.attended(self._project(query_hidden, hidden), attend))

    def call(
        self, query_hidden: QueryHidden, hidden: KeyHidden, prepared: Prepared
    ) -> AttentionCall:
        """Return what the backend is asked to compute."""
        return self._call(self._project(query_hidden, hidden), prepared)

    def _project(self, query_hidden: QueryHidden, hidden: KeyHidden) -> Projected:
        query = self.query_proj(query_hidden)
        return Projected(query_hidden, query, self.key_proj(hidden), self.value_proj(hidden))

    def _call(self, projected: Projected, prepared: Prepared) -> AttentionCall:
        position = self.position
        split = "b l (h d) -> b h l d"
        content = Heads(
            query=rearrange(projected.query, split, h=self.num_heads),
            key=rearrange(projected.key, split, h=self.num_heads),
            value=rearrange(projected.value, split, h=self.num_heads),
        )
        visibility = position.visibility(prepared)
        projections = (self.query_proj, self.key_proj)
        states = projected.query_hidden
        sites = position.sites(content, prepared, projections, visibility, states)
        heads = position.rotate(sites, content)
        return AttentionCall(
            query=heads.query,
            key=heads.key,
            value=heads.value,
            scale=position.scale,
            bias=position.bias(sites),
            visibility=visibility,
            relative_values=position.relative_values(sites),
            dropout=self.dropout if self.training else 0.0,
        )
