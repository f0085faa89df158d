"""The whole masked language model: encoder, decoder, head."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, final

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from posattn.backends import AttentionCall, logits_by_term
from posattn.encoder.attention import Observer
from posattn.encoder.config import EncoderConfig
from posattn.encoder.context import Context, all_visible
from posattn.encoder.decoders import DecoderConfig, decoders
from posattn.encoder.encoder import Encoder
from posattn.encoder.heads import HeadConfig, MaskedTokenHead
from posattn.encoder.memory import SegmentMemory
from posattn.encoder.position import LayerPosition
from posattn.encoder.selection import Selection, selection
from posattn.errors import IncompatibleParts
from posattn.mechanisms import Mechanism
from posattn.mechanisms.chance import draw_seed
from posattn.shapes import Logits, QueryHidden


@final
@dataclass(frozen=True)
class ModelOutput:
    """What a forward returns: logits, the states they were read from, and the next segment's memory.

    With `selected`, logits are [selected, vocab], sequence by sequence, and hidden [selected, hidden];
    without, [batch, length, vocab] and [batch, length, hidden].
    """

    logits: Float[Tensor, "*places vocab"]
    hidden: Float[Tensor, "*places hidden"]
    memory: SegmentMemory | None


@final
class MaskedLanguageModel(nn.Module):
    """An encoder with its decoder and masked-token head."""

    def __init__(
        self,
        config: EncoderConfig,
        decoder: DecoderConfig,
        vocab_size: int,
        head: HeadConfig = HeadConfig(),  # noqa: B008 - frozen
    ) -> None:
        """Build all parts; `posattn.encoder.init.initialize` gives the parameters their first values."""
        super().__init__()
        if problems := decoder.problems(config) + head.problems(config):
            raise IncompatibleParts("; ".join(problems))
        self.config = config
        self.decoder_config = decoder
        self.head_config = head
        self.encoder = Encoder(config, vocab_size)
        self.decoder = decoders.get(decoder.name)(decoder, self.encoder)
        self.head = MaskedTokenHead(config, self.encoder.tokens, head)

    def forward(
        self,
        ids: Int[Tensor, "batch length"],
        *,
        visible: Bool[Tensor, "batch length"] | None = None,
        positions: Int[Tensor, "#batch length"] | None = None,
        documents: Int[Tensor, "batch length"] | None = None,
        segments: Int[Tensor, "batch length"] | None = None,
        selected: Bool[Tensor, "batch length"] | None = None,
        coordinates: Tensor | None = None,
        relation: Tensor | None = None,
        memory: SegmentMemory | None = None,
        observer: Observer | None = None,
    ) -> ModelOutput:
        """Return logits at the selected places, or everywhere; arguments as in `Encoder.forward`."""
        self._check(ids.shape[1])
        given = {
            "visible": None if all_visible(visible) else visible,
            "positions": positions,
            "documents": documents,
            "segments": segments,
            "coordinates": coordinates,
            "relation": relation,
            "memory": memory,
            "seed": draw_seed() if self.training and self.encoder.position.draws else None,
        }
        if self.config.unpad:
            return self._without_padding(ids, selected, observer, given)
        queries = None if selected is None else selection(selected)
        hidden, after = self._states(ids, queries, observer, given)
        return self._read(hidden, queries, after)

    def compile(self, *args: Any, **kwargs: Any) -> None:
        """Compile all between the tokens and the head; arguments as those of `torch.compile`.

        What is looked at in values, such as how many places are selected, stays outside, so that the
        rest is one graph for every length if it is told `dynamic=True`.
        """
        self._states = torch.compile(self._states, *args, **kwargs)  # type: ignore[method-assign]

    def _states(
        self,
        ids: Int[Tensor, "batch length"],
        queries: Selection | None,
        observer: Observer | None,
        given: Mapping[str, Any],
    ) -> tuple[QueryHidden, SegmentMemory | None]:
        """Return the decoded states, at the queries if there are any, and the next segment's memory."""
        context, inputs = self._encoded(ids, observer, given)
        hidden = self.decoder(self.encoder, inputs, context, queries, observer)
        return hidden, context.remember(inputs)

    def _without_padding(
        self,
        ids: Int[Tensor, "batch length"],
        selected: Bool[Tensor, "batch length"] | None,
        observer: Observer | None,
        given: Mapping[str, Any],
    ) -> ModelOutput:
        """Return what the real tokens alone make, laid out as the batch has them."""
        context, inputs = self._encoded(ids, observer, given)
        queries = None if selected is None else selection(context.in_a_row(selected))
        hidden = self.decoder(self.encoder, inputs, context, queries, observer)
        read = self._read(hidden, queries, None)
        if queries is not None:
            return read
        return ModelOutput(context.in_rows(read.logits), context.in_rows(read.hidden), None)

    def _read(
        self, hidden: QueryHidden, queries: Selection | None, after: SegmentMemory | None
    ) -> ModelOutput:
        """Return what the head makes of the decoded states."""
        if queries is not None:
            hidden = queries.flatten(hidden)
        return ModelOutput(self.head(hidden), hidden, after)

    def _encoded(
        self, ids: Int[Tensor, "batch length"], observer: Observer | None, given: Mapping[str, Any]
    ) -> tuple[Context, list[Float[Tensor, "rows tokens hidden"]]]:
        """Return what all layers share and the input of every layer."""
        context = self.encoder.begin(ids, **given)
        hidden = self.encoder.embed(ids, given["segments"], context)
        return context, self.encoder.run(hidden, context, observer)

    def max_length(self) -> int | None:
        """Return the longest sequence the model takes, or None if there is no limit."""
        limits = (self.config.max_length(), self.decoder_config.max_length())
        return min((limit for limit in limits if limit is not None), default=None)

    def score_terms(
        self, ids: Int[Tensor, "batch length"], **inputs: Any
    ) -> list[dict[str, Logits]]:
        """Return, for each attention in the order it runs, every named term of its logits."""
        terms: list[dict[str, Logits]] = []

        def record(call: AttentionCall, content_term: str) -> None:
            terms.append(dict(logits_by_term(call, content_term)))

        self.forward(ids, observer=record, **inputs)
        return terms

    def _check(self, length: int) -> None:
        limit = self.decoder_config.max_length()
        if limit is not None and length > limit:
            raise IncompatibleParts(
                f"the input has {length} tokens, but the '{self.decoder_config.name}' decoder "
                f"injects positions for at most {limit}; shorten the input or enlarge its table"
            )


def position_parameters(model: MaskedLanguageModel) -> set[str]:
    """Return the names of all parameters that mechanisms, or a decoder's injected signal, own."""
    names: set[str] = set()
    for prefix, module in model.named_modules():
        if isinstance(module, Mechanism | LayerPosition):
            names.update(f"{prefix}.{name}" for name, _ in module.named_parameters())
    return names
