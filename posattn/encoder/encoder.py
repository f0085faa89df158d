"""The encoder: embeddings, the mechanisms that layers share, and the stack of layers."""

from typing import final

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn
from torch.nn import functional

from posattn.backends import registry as backends
from posattn.encoder.attention import Observer
from posattn.encoder.config import EncoderConfig
from posattn.encoder.context import Context, Tokens, all_visible
from posattn.encoder.convolution import EmbeddingConvolution
from posattn.encoder.layer import EncoderLayer, norm
from posattn.encoder.memory import SegmentMemory, empty_memory
from posattn.encoder.position import PositionStack
from posattn.encoder.selection import Selection
from posattn.encoder.texts import Texts, find_texts
from posattn.errors import IncompatibleParts
from posattn.positions import counted_positions, document_positions
from posattn.shapes import Hidden, QueryHidden

Ids = Int[Tensor, "batch length"]


@final
class Encoder(nn.Module):
    """Tokens to states. Decoders drive it step by step: `begin`, `run`, `last`, `finish`."""

    def __init__(self, config: EncoderConfig, vocab_size: int) -> None:
        """Build embeddings, mechanisms and layers; parameters are not initialised by name yet."""
        super().__init__()
        self.config = config
        self.longest, self.memory_length = config.max_length(), config.memory_length()
        narrow = config.embedding_size
        self.tokens = nn.Embedding(_rows(config, vocab_size), narrow or config.hidden_size)
        if narrow is not None:
            self.embedding_proj = nn.Linear(narrow, config.hidden_size, bias=_sums_first(config))
        summed = narrow if narrow is not None and _sums_first(config) else config.hidden_size
        if config.segments:
            self.segments = nn.Embedding(config.segments, summed)
        self.position = PositionStack(config)
        self.embedding_norm = norm(config, summed) if config.embedding_norm else nn.Identity()
        self.backend = backends.get(config.backend)()
        self.layers = nn.ModuleList(
            EncoderLayer(config, self.position, index, self.backend)
            for index in range(config.num_layers)
        )
        if config.convolution is not None:
            self.convolution = EmbeddingConvolution(config, config.convolution)
        is_pre_norm = config.norm.placement == "pre"
        self.final_norm = norm(config) if is_pre_norm else nn.Identity()

    def forward(
        self,
        ids: Ids,
        *,
        visible: Bool[Tensor, "batch length"] | None = None,
        positions: Int[Tensor, "#batch length"] | None = None,
        documents: Ids | None = None,
        segments: Ids | None = None,
        coordinates: Tensor | None = None,
        relation: Tensor | None = None,
        memory: SegmentMemory | None = None,
        observer: Observer | None = None,
    ) -> Hidden:
        """Return the states of the last layer.

        `visible` is True at real tokens (None: all are). `positions` default to a count over the
        visible tokens, from 0 in each document; padding has -1. With `documents`, tokens see their
        own document only. `segments` are needed if the encoder has a segment table.

        On a grid, `coordinates` [batch or 1, length, 2] say in which row and column each token is, negative
        for one in no cell; by default positions count the cells row by row. `relation` [batch or 1,
        length, length] holds the integer of each query and key, and is needed where it is given.
        Raises `IncompatibleParts` for any of these that does not fit the encoder or the tokens.
        """
        context = self.begin(
            ids,
            visible=visible,
            positions=positions,
            documents=documents,
            segments=segments,
            coordinates=coordinates,
            relation=relation,
            memory=memory,
        )
        inputs = self.run(self.embed(ids, segments, context), context, observer)
        return context.in_rows(self.finish(self.last(inputs[-1], context, observer=observer)))

    def begin(
        self,
        ids: Ids,
        *,
        visible: Bool[Tensor, "batch length"] | None = None,
        positions: Int[Tensor, "#batch length"] | None = None,
        documents: Ids | None = None,
        segments: Ids | None = None,
        coordinates: Tensor | None = None,
        relation: Tensor | None = None,
        memory: SegmentMemory | None = None,
        seed: Int[Tensor, ""] | None = None,
    ) -> Context:
        """Return what all layers share for these tokens; `seed` is of what mechanisms draw in training."""
        self._check(ids, documents, memory)
        shape = (ids.shape[0], ids.shape[1])
        given = self.config.relation.pairs(relation, shape)
        if all_visible(visible):
            visible = None  # every backend is faster without
        if memory is None and self.memory_length:
            memory = self.empty_memory(ids.shape[0])
        if coordinates is not None:
            if positions is not None:
                raise IncompatibleParts(
                    "give coordinates or positions, not both: one says the other"
                )
            positions = self.config.relation.positions(coordinates, shape, visible, documents)
        elif positions is not None:
            self._check_room(positions)
        is_counted = positions is None
        if positions is None:
            positions = self._positions(ids, visible, documents)
        tokens = Tokens(
            positions=positions,
            visible=visible,
            documents=documents,
            memory=memory,
            rows=ids.shape[0],
            is_counted=is_counted,
            relation=given,
            segments=segments if self.config.reads_segments() else None,
            seed=seed,
            texts=self._texts(ids, visible, documents),
        )
        window = None if self.config.window is None else self.config.window.size
        return Context(tokens, self.position, window, self.training)

    def embed(
        self, ids: Ids, segments: Ids | None, context: Context
    ) -> Float[Tensor, "rows tokens hidden"]:
        """Return token, segment and position embeddings, summed, normalised, dropped out.

        They are laid out as the layers see the tokens: row by row, or with `unpad` in one row.
        """
        hidden = self.tokens(context.in_a_row(ids))
        visible = None if context.tokens.texts is not None else context.tokens.visible
        if visible is not None:  # not even NaN gets from padding to real tokens
            hidden = hidden.masked_fill(~visible[:, :, None], 0.0)
        narrow, sums_first = self.config.embedding_size is not None, _sums_first(self.config)
        if narrow and not sums_first:
            hidden = self.embedding_proj(hidden)
        if self.config.embedding_scale == "sqrt_hidden":
            hidden = hidden * self.config.hidden_size**0.5
        if self.config.segments:
            if segments is None and self.config.segments == 1:
                segments = torch.zeros_like(ids)  # RoBERTa's table has nothing to tell apart
            if segments is None:
                raise IncompatibleParts(
                    f"this encoder has a segment table of {self.config.segments} rows, so it needs "
                    "segments: pass zeros for single texts, 0 and 1 for pairs"
                )
            hidden = hidden + self.segments(context.in_a_row(segments))
        positions = context.in_a_row(context.tokens.positions)
        placed = {name: context.in_a_row(at) for name, at in context.placed.items()}
        if narrow and sums_first:
            hidden = self.embedding_proj(self._normed(hidden))
            return self.position.embed(hidden, positions, placed)
        return self._normed(self.position.embed(hidden, positions, placed))

    def _normed(
        self, hidden: Float[Tensor, "batch length any"]
    ) -> Float[Tensor, "batch length any"]:
        normed = self.embedding_norm(hidden)
        return functional.dropout(normed, self.config.hidden_dropout, self.training)

    def run(
        self, hidden: Hidden, context: Context, observer: Observer | None = None
    ) -> list[Hidden]:
        """Run all layers but the last and return the input of every layer."""
        inputs = [hidden]
        for index, layer in enumerate(list(self.layers)[:-1]):
            keys = context.keys(index, hidden)
            hidden = layer(hidden, keys, context.prepared, observer)
            if index == 0 and self.config.convolution is not None:
                before, after = context.in_rows(inputs[0]), context.in_rows(hidden)
                after = self.convolution(before, after, context.tokens.visible)
                hidden = context.in_a_row(after)
            inputs.append(hidden)
        return inputs

    def last(
        self,
        hidden: Hidden,
        context: Context,
        queries: Selection | None = None,
        observer: Observer | None = None,
    ) -> QueryHidden:
        """Run the last layer, at the selected places only if there is a selection."""
        index = len(self.layers) - 1
        keys = context.keys(index, hidden)
        if queries is None:
            return self.layers[index](hidden, keys, context.prepared, observer)
        prepared = context.for_queries(queries)
        return self.layers[index](queries.take(hidden), keys, prepared, observer)

    def finish(self, hidden: QueryHidden) -> QueryHidden:
        """Return the states after the norm that pre-norm encoders end with."""
        return self.final_norm(hidden)

    def empty_memory(self, num_streams: int) -> SegmentMemory | None:
        """Return a memory that has seen nothing, or None if no mechanism has memory."""
        length = self.memory_length
        if not length:
            return None
        weight = self.tokens.weight
        shape = (num_streams, length, self.config.num_layers, self.config.hidden_size)
        return empty_memory(*shape, weight.device, weight.dtype)

    def _check(self, ids: Ids, documents: Ids | None, memory: SegmentMemory | None) -> None:
        limit, length = self.longest, ids.shape[1]
        if limit is not None and length > limit:
            names = ", ".join(name for name, least in self.config.limits() if least == limit)
            raise IncompatibleParts(
                f"the input has {length} tokens, but {names} takes at most {limit}; shorten the "
                "input or enlarge its table"
            )
        if documents is not None and self.memory_length:
            raise IncompatibleParts(
                "memory belongs to one stream, but documents packs several texts into a row; give "
                "each its own row, or set memory_length to 0"
            )
        if documents is not None and self.config.convolution is not None:
            raise IncompatibleParts(
                "the convolution reads neighbours, in a packed row those of other texts as well; give "
                "each text its own row (data.layout: padded), or let texts see each other "
                "(data.across_documents: true)"
            )
        if memory is None:
            return
        if not self.memory_length:
            raise IncompatibleParts("memory was given, but no mechanism of this encoder has memory")
        if memory.positions.shape[0] != ids.shape[0]:
            raise IncompatibleParts(
                f"memory of {memory.positions.shape[0]} streams was given for a batch of "
                f"{ids.shape[0]}; choose the batch's streams with memory.select(rows)"
            )

    def _texts(
        self,
        ids: Ids,
        visible: Bool[Tensor, "batch length"] | None,
        documents: Ids | None,
    ) -> Texts | None:
        """Return the texts that are computed apart from their rows, or None to compute rows."""
        if not self.config.unpad or (visible is None and documents is None):
            return None
        if visible is None:
            visible = torch.ones_like(ids, dtype=torch.bool)
        return find_texts(visible, documents) if bool(visible.any()) else None

    def _check_room(self, positions: Int[Tensor, "#batch length"]) -> None:
        limit = self.config.relation.max_length()
        if limit is not None and positions.numel() and int(positions.max()) >= limit:
            raise IncompatibleParts(
                f"position {int(positions.max())} is past the end of the grid, whose cells and tokens "
                f"in front of them have positions 0 to {limit - 1}; enlarge encoder.relation"
            )

    def _positions(
        self,
        ids: Ids,
        visible: Bool[Tensor, "batch length"] | None,
        documents: Ids | None,
    ) -> Int[Tensor, "#batch length"]:
        if documents is not None:
            return document_positions(documents, visible)
        if visible is None:
            return torch.arange(ids.shape[1], device=ids.device)[None]
        return counted_positions(visible)


def _sums_first(config: EncoderConfig) -> bool:
    """Return whether segments and norm are as narrow as the token table, and projected with it."""
    return config.embedding_projection == "sum"


def _rows(config: EncoderConfig, vocab_size: int) -> int:
    """Return the rows of the token table, which may be more than the tokenizer has ids."""
    if config.token_rows is not None and config.token_rows < vocab_size:
        raise IncompatibleParts(
            f"encoder.token_rows is {config.token_rows}, but the tokenizer has {vocab_size} ids; raise "
            f"it to {vocab_size}, leave it out, or use the tokenizer that belongs to the table"
        )
    return config.token_rows or vocab_size
