"""The enhanced mask decoder, EMD, of DeBERTa (He et al. 2021, arXiv:2006.03654, sections 3.2 and A.8).

    q_0 = H + I   (`query: h_plus_p`)   or   q_0 = I   (`query: p_only`)
    q_t = Layer_t(queries = q_{t-1}, keys and values = K),   t = 1 .. layers
    the head reads q_layers;  H = H_(n-1), the output of the last layer but one;  I = injected position

The paper's text starts from I alone and shares the weights of n = 2 decoder layers. Microsoft's
released code (apps/models/masked_language_model.py) starts from H + I, with I the raw position table,
neither normalised nor dropped out, takes the encoder's own last layer twice (`share: last_layer`), and
K = H_(n-1) (`kv: n-1`); the relative terms stay active. Defaults follow the code. The residual follows
q, so I enters queries and residual stream. What is injected is any mechanism that adds to the input;
`none` with one layer is BERT's last layer, the control arm. Decoding only the selected places is equal
to decoding all: places decoded do not see each other.
"""

from collections.abc import Mapping
from typing import Literal, final

from pydantic import PositiveInt, model_validator
from torch import nn
from typing_extensions import override

from posattn.encoder.attention import Observer
from posattn.encoder.config import EncoderConfig, unread_relation
from posattn.encoder.context import Context
from posattn.encoder.decoder import Decoder, DecoderConfig, decoders
from posattn.encoder.encoder import Encoder
from posattn.encoder.layer import EncoderLayer
from posattn.encoder.selection import Selection
from posattn.mechanisms import (
    AnyMechanismConfig,
    LayerPattern,
    LearnedConfig,
    MechanismConfig,
    registry,
)
from posattn.shapes import Hidden, QueryHidden


class MaskDecoderConfig(DecoderConfig):
    """Options of the enhanced mask decoder."""

    name: Literal["emd"] = "emd"
    inject: AnyMechanismConfig = LearnedConfig()  # any mechanism that adds to the input, or none
    query: Literal["h_plus_p", "p_only"] = "h_plus_p"
    layers: PositiveInt = 2
    share: Literal["last_layer", "own"] = "last_layer"
    kv: Literal["n-1", "n"] = "n-1"
    decode: Literal["masked_only", "all"] = "masked_only"

    @model_validator(mode="after")
    def _parts_fit(self) -> "MaskDecoderConfig":
        adds = self.inject.traits().adds_to_input
        if not adds and self.inject.name != "none":
            raise ValueError(
                f"inject: '{self.inject.name}' adds nothing to states; inject a mechanism that does "
                "(learned, sinusoidal), or none"
            )
        if self.inject.layers != LayerPattern():
            raise ValueError(
                "inject acts before the decoder's layers, so it takes no layers option"
            )
        if not adds and self.query == "p_only":
            raise ValueError("query: p_only with inject: none leaves the queries empty")
        if self.share == "own" and self.kv == "n-1":
            raise ValueError(
                "share: own with kv: n-1 would leave the encoder's last layer untrained; use kv: n"
            )
        return self

    @override
    def problems(self, encoder: EncoderConfig) -> list[str]:
        if self.kv == "n" and encoder.memory_length():
            return ["emd with kv: n has no memory to read, since layers remember inputs; use n-1"]
        return self.inject.problems(encoder.dims()) + unread_relation(self.inject, encoder.relation)

    @override
    def max_length(self) -> int | None:
        limit: int | None = self.inject.max_length()
        return limit

    @override
    def card(self, encoder: EncoderConfig) -> Mapping[str, str]:
        query = "H + I" if self.query == "h_plus_p" else "I"
        owner = "the encoder's last layer" if self.share == "last_layer" else "its own layers"
        lines = {
            "decoder": f"enhanced mask decoder: {self.layers} x {owner}, query {query}, "
            f"keys and values from layer {self.kv}, {self.decode.replace('_', ' ')}",
            "injected": self.inject.name,
        }
        for key, value in self.inject.card(encoder.dims()).items():
            lines[f"injected {key}"] = value
        return lines

    @override
    def layer_runs(self, encoder: EncoderConfig) -> tuple[int, int]:
        everywhere = encoder.num_layers - (1 if self.kv == "n-1" else 0)
        if self.decode == "all":
            return everywhere + self.layers, 0
        return everywhere, self.layers

    @override
    def own_passes(self) -> int:
        return self.layers

    @override
    def injected(self) -> MechanismConfig:
        config: MechanismConfig = self.inject
        return config


@final
@decoders.register("emd")
class EnhancedMaskDecoder(Decoder[MaskDecoderConfig]):
    """Absolute position, or whatever is injected, just before prediction."""

    Config = MaskDecoderConfig

    def __init__(self, config: MaskDecoderConfig, encoder: Encoder) -> None:
        """Build the injected signal, and the decoder's own layers if it has any."""
        super().__init__(config, encoder)
        self.inject = registry.get(config.inject.name)(config.inject, encoder.config.dims())
        own = config.layers if config.share == "own" else 0
        last = encoder.config.num_layers - 1
        self.layers = nn.ModuleList(
            EncoderLayer(encoder.config, encoder.position, last, encoder.backend)
            for _ in range(own)
        )

    @override
    def forward(
        self,
        encoder: Encoder,
        inputs: list[Hidden],
        context: Context,
        queries: Selection | None,
        observer: Observer | None = None,
    ) -> QueryHidden:
        hidden = inputs[-1]
        if self.config.kv == "n":
            hidden = encoder.last(hidden, context, observer=observer)
        query, prepared = self._first_query(hidden, context), context.prepared
        narrow = queries is not None and self.config.decode == "masked_only"
        if narrow and queries is not None:
            query, prepared = queries.take(query), context.for_queries(queries)
        keys = context.keys(len(encoder.layers) - 1, hidden)
        shared = [encoder.layers[-1]] * self.config.layers
        for layer in self.layers if self.config.share == "own" else shared:
            query = layer(query, keys, prepared, observer)
        query = encoder.finish(query)
        return query if queries is None or narrow else queries.take(query)

    def _first_query(self, hidden: Hidden, context: Context) -> Hidden:
        start = hidden if self.config.query == "h_plus_p" else hidden.new_zeros(hidden.shape)
        return self.inject.embed(start, context.in_a_row(self.inject.place(context.places)))
