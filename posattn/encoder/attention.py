"""Multi-head attention: projections around the mechanisms of a layer and one backend."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any, TypeAlias, final

from torch import nn

from posattn.backends import AttentionBackend, AttentionCall
from posattn.bias import Visibility
from posattn.encoder.config import EncoderConfig
from posattn.encoder.position import (
    Arrangement,
    LayerPosition,
    PositionStack,
    Prepared,
    Projected,
)
from posattn.encoder.projections import StackedProjections
from posattn.mechanisms import Heads, Mechanism, Site
from posattn.shapes import KeyHidden, PerHead, QueryHidden

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
        self.stacked = StackedProjections()
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
                observed = self._with_resting(call, projected, prepared)
                observer(observed, self.position.content_term(prepared))
            return self.backend.attend(call).transpose(1, 2).flatten(2)

        return self.output_proj(prepared.attended(self._project(query_hidden, hidden), attend))

    def call(
        self, query_hidden: QueryHidden, hidden: KeyHidden, prepared: Prepared
    ) -> AttentionCall:
        """Return what the backend is asked to compute."""
        return self._call(self._project(query_hidden, hidden), prepared)

    def _project(self, query_hidden: QueryHidden, hidden: KeyHidden) -> Projected:
        """Return queries, keys and values; as one product where no gradient is recorded."""
        projections = (self.query_proj, self.key_proj, self.value_proj)
        if query_hidden is hidden and not self.training and self.stacked.takes(projections):
            query, key, value = self.stacked(projections, hidden).chunk(3, dim=-1)
        else:
            query, key = self.query_proj(query_hidden), self.key_proj(hidden)
            value = self.value_proj(hidden)
        return Projected(query_hidden, query, key, value)

    def _call(self, projected: Projected, prepared: Prepared) -> AttentionCall:
        position, content = self.position, self._heads(projected)
        visibility = position.visibility(prepared)
        sites = self._sites(content, projected, prepared, visibility)
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

    def _with_resting(
        self, call: AttentionCall, projected: Projected, prepared: Prepared
    ) -> AttentionCall:
        """Return the call as observers see it: with queries and keys of tokens all at one place."""
        content = self._heads(projected)
        sites = self._sites(content, projected, prepared, call.visibility)
        heads = self.position.rest(sites, content)
        return call if heads is None else replace(call, resting=(heads.query, heads.key))

    def _heads(self, projected: Projected) -> Heads:
        """Return queries, keys and values split into heads, before any rotation."""
        return Heads(
            query=self._split(projected.query),
            key=self._split(projected.key),
            value=self._split(projected.value),
        )

    def _sites(
        self, content: Heads, projected: Projected, prepared: Prepared, visibility: Visibility
    ) -> list[tuple[Mechanism[Any], Site]]:
        """Return each acting mechanism with this layer as it sees it."""
        projections = (self.query_proj, self.key_proj)
        states = projected.query_hidden
        return self.position.sites(content, prepared, projections, visibility, states)

    def _split(self, hidden: KeyHidden) -> PerHead:
        return hidden.unflatten(-1, (self.num_heads, -1)).transpose(1, 2)
