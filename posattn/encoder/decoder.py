"""`Decoder`: from the encoder's states to what the masked-token head reads; and the plain one."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar, Generic, Literal, TypeVar, final

from torch import nn
from typing_extensions import override

from posattn.admission import class_check
from posattn.config import NamedConfig, open_field
from posattn.encoder.attention import Observer
from posattn.encoder.config import EncoderConfig
from posattn.encoder.context import Context
from posattn.encoder.encoder import Encoder
from posattn.encoder.selection import Selection
from posattn.mechanisms import MechanismConfig
from posattn.registry import Registry
from posattn.shapes import Hidden, QueryHidden


class DecoderConfig(NamedConfig):
    """Options of one decoder."""

    def problems(self, encoder: EncoderConfig) -> list[str]:
        """Return every reason why this decoder does not fit the encoder."""
        return []

    def max_length(self) -> int | None:
        """Return the longest sequence it can decode, or None if there is no limit."""
        return None

    def card(self, encoder: EncoderConfig) -> Mapping[str, str]:
        """Return the lines of the architecture card."""
        return {}

    def layer_runs(self, encoder: EncoderConfig) -> tuple[int, int]:
        """Return how many layers run at every place, and how many at the places decoded only."""
        return encoder.num_layers, 0

    def own_passes(self) -> int:
        """Return how often attention runs after the encoder's layers, or in place of the last."""
        return 0

    def injected(self) -> MechanismConfig | None:
        """Return the options of the position signal that it adds to states; None if it adds none."""
        return None


C = TypeVar("C", bound=DecoderConfig)


class Decoder(nn.Module, ABC, Generic[C]):
    """Runs what is left of the encoder and returns the states that the head reads."""

    Config: ClassVar[type[DecoderConfig]]

    def __init__(self, config: C, encoder: Encoder) -> None:
        """Keep the options; the encoder is given again at every call and is not owned."""
        super().__init__()
        self.config = config

    @abstractmethod
    def forward(
        self,
        encoder: Encoder,
        inputs: list[Hidden],
        context: Context,
        queries: Selection | None,
        observer: Observer | None = None,
    ) -> QueryHidden:
        """Return states at the selected places, or at all places without a selection.

        `inputs` holds the input of every encoder layer; the last layer has not run yet.
        """


decoders: Registry[type[Decoder[Any]]] = Registry(
    "decoder", "posattn.decoders", class_check(Decoder, config=DecoderConfig)
)
AnyDecoderConfig = open_field(decoders, DecoderConfig)


class PlainDecoderConfig(DecoderConfig):
    """Options of the plain decoder."""

    name: Literal["plain"] = "plain"
    decode: Literal["masked_only", "all"] = (
        "masked_only"  # where the last layer runs; equal results
    )

    @override
    def card(self, encoder: EncoderConfig) -> Mapping[str, str]:
        return {"decoder": f"none: the head reads the last layer, {self.decode.replace('_', ' ')}"}

    @override
    def layer_runs(self, encoder: EncoderConfig) -> tuple[int, int]:
        if self.decode == "all":
            return encoder.num_layers, 0
        return encoder.num_layers - 1, 1


@final
@decoders.register("plain")
class PlainDecoder(Decoder[PlainDecoderConfig]):
    """The last encoder layer and nothing else (BERT)."""

    Config = PlainDecoderConfig

    @override
    def forward(
        self,
        encoder: Encoder,
        inputs: list[Hidden],
        context: Context,
        queries: Selection | None,
        observer: Observer | None = None,
    ) -> QueryHidden:
        if queries is None or self.config.decode == "masked_only":
            return encoder.finish(encoder.last(inputs[-1], context, queries, observer))
        return queries.take(encoder.finish(encoder.last(inputs[-1], context, None, observer)))
