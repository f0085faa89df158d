"""What all layers of one forward share: who is where, who sees whom, and what was before."""

from dataclasses import dataclass, replace
from typing import final

import torch
from jaxtyping import Bool, Int, Num, Shaped
from torch import Tensor

from posattn.bias import Padding, SameDocument, VisibilityRule, Window
from posattn.encoder.memory import SegmentMemory
from posattn.encoder.position import Arrangement, PositionStack, Prepared, PreparedTexts
from posattn.encoder.selection import Selection
from posattn.encoder.texts import TextGroup, Texts
from posattn.mechanisms import Geometry, Places
from posattn.positions import GivenPairs
from posattn.shapes import Hidden, KeyHidden


@final
@dataclass(frozen=True)
class Tokens:
    """Where the tokens of a batch are; `visible` and `documents` are None where they say nothing."""

    positions: Int[Tensor, "#batch length"]
    visible: Bool[Tensor, "batch length"] | None
    documents: Int[Tensor, "batch length"] | None
    memory: SegmentMemory | None
    rows: int  # sequences in the batch
    is_counted: bool = False  # positions count from 0 in each text
    relation: GivenPairs | None = None  # of all pairs, where the relation is given
    segments: Int[Tensor, "batch length"] | None = None  # where a mechanism reads them
    seed: Int[Tensor, ""] | None = None  # of what mechanisms draw, if it is drawn already
    texts: Texts | None = None  # if the layers see the real tokens only, in one row


@final
class Context:
    """The tokens of one forward with what the mechanisms prepared for them."""

    def __init__(
        self, tokens: Tokens, stack: PositionStack, window: int | None, training: bool
    ) -> None:
        """Place the tokens and prepare every mechanism for queries at all of them."""
        self.tokens = tokens
        self.places = Places(tokens.positions, tokens.documents, training, tokens.rows, tokens.seed)
        self.placed = stack.place(self.places)
        self._stack = stack
        self._window = window
        self.prepared = self._prepare(None)

    def in_a_row(self, values: Shaped[Tensor, "#batch length *more"]) -> Shaped[Tensor, "..."]:
        """Return what the batch has for each token, as the layers see the tokens."""
        texts = self.tokens.texts
        return values if texts is None else texts.in_a_row(values)

    def in_rows(self, values: Shaped[Tensor, "..."]) -> Shaped[Tensor, "..."]:
        """Return what the layers have for each token, as the batch has the tokens; zeros at padding."""
        texts = self.tokens.texts
        return values if texts is None else texts.in_rows(values)

    def for_queries(self, selection: Selection) -> Arrangement:
        """Return what the mechanisms prepare for queries at the selected places only."""
        return self._prepare(selection)

    def keys(self, layer: int, hidden: Hidden) -> KeyHidden:
        """Return the states that serve as keys and values of a layer: memory first, then the tokens."""
        memory = self.tokens.memory
        if memory is None:
            return hidden
        return torch.cat([memory.states[layer].to(hidden.dtype), hidden], dim=1)

    def remember(self, inputs: list[Hidden]) -> SegmentMemory | None:
        """Return the memory for the next segment, given every layer's input."""
        tokens = self.tokens
        if tokens.memory is None:
            return None
        batch, length = inputs[0].shape[:2]
        visible = tokens.visible
        if visible is None:
            visible = torch.ones(batch, length, dtype=torch.bool, device=inputs[0].device)
        positions = (tokens.positions - self._start()).expand(batch, -1)
        return tokens.memory.extended(inputs, positions, visible)

    def _prepare(self, selection: Selection | None) -> Arrangement:
        """Prepare for queries at the selected places, or at all."""
        texts = self.tokens.texts
        if texts is None:
            return self._prepare_rows(selection)
        if selection is None:
            whole = ((group, group, self._prepare_group(group, None)) for group in texts.groups)
            return PreparedTexts(tuple(whole))
        some = (
            (group, queries, self._prepare_group(group, places))
            for group, places, queries in texts.queries(selection)
        )
        return PreparedTexts(tuple(some))

    def _prepare_group(self, group: TextGroup, selection: Selection | None) -> Prepared:
        """Prepare for one group of texts, each of which is a row of its own."""
        reach = None if group.is_ragged or not self.tokens.is_counted else group.longest - 1
        key_segments = query_segments = self._segments_in(group)
        if selection is not None and key_segments is not None:
            query_segments = selection.take_positions(key_segments)

        def geometry(
            values: Num[Tensor, "#batch length"], reach: int | None, given: GivenPairs | None
        ) -> Geometry:
            at = group.take(self.in_a_row(values)).masked_fill(~group.valid, -1)
            if reach is not None:
                at = at[:1]  # all of them count alike
            query = at if selection is None else selection.take_positions(at)
            return Geometry(
                query,
                at,
                reach,
                given=given,
                query_segments=query_segments,
                key_segments=key_segments,
            )

        plain = geometry(self.tokens.positions, reach, self._given_in(group, selection))
        placed = {name: geometry(at, None, None) for name, at in self.placed.items()}
        rules = (Padding(group.valid),) if group.is_ragged else ()
        return self._stack.prepare(plain, rules, self._local(plain), placed)

    def _local(self, geometry: Geometry) -> Window | None:
        return None if self._window is None else Window(geometry.distance, self._window // 2)

    def _prepare_rows(self, selection: Selection | None) -> Prepared:
        keys, of_keys = self._with_memory(self.tokens.positions), self.tokens.documents

        key_segments = self._segments_with_memory()

        def at_queries(values: Num[Tensor, "#batch length"]) -> Num[Tensor, "#batch query"]:
            return values if selection is None else selection.take_positions(values)

        of_queries = None if of_keys is None else at_queries(of_keys)
        segments = self.tokens.segments
        query_segments = None if segments is None else at_queries(segments)
        geometry = Geometry(
            at_queries(self.tokens.positions),
            keys,
            self._reach(),
            of_queries,
            of_keys,
            self._given(selection),
            query_segments=query_segments,
            key_segments=key_segments,
        )
        placed = {
            name: replace(
                geometry,
                query_positions=at_queries(at),
                key_positions=self._with_memory(at),
                reach=None,
                given=None,
            )
            for name, at in self.placed.items()
        }
        rules: list[VisibilityRule] = []
        if (visible := self._visible_keys()) is not None:
            rules.append(Padding(visible))
        if of_keys is not None and of_queries is not None:
            rules.append(SameDocument(of_queries, of_keys))
        return self._stack.prepare(geometry, tuple(rules), self._local(geometry), placed)

    def _given(self, selection: Selection | None) -> GivenPairs | None:
        return _at_queries(self.tokens.relation, selection)

    def _given_in(self, group: TextGroup, selection: Selection | None) -> GivenPairs | None:
        relation, texts = self.tokens.relation, self.tokens.texts
        if relation is None or texts is None:
            return None
        return _at_queries(GivenPairs(texts.pairs_in(group, relation.pairs)), selection)

    def _segments_in(self, group: TextGroup) -> Int[Tensor, "texts place"] | None:
        segments = self.tokens.segments
        return None if segments is None else group.take(self.in_a_row(segments))

    def _with_memory(self, positions: Num[Tensor, "#batch length"]) -> Num[Tensor, "#batch key"]:
        memory = self.tokens.memory
        if memory is None:
            return positions
        batch = memory.positions.shape[0]
        return torch.cat([memory.positions + self._start(), positions.expand(batch, -1)], dim=1)

    def _segments_with_memory(self) -> Int[Tensor, "batch key"] | None:
        """Return the segments of all keys; what is remembered counts as segment 0, as in XLNet."""
        segments, memory = self.tokens.segments, self.tokens.memory
        if segments is None or memory is None:
            return segments
        return torch.cat([torch.zeros_like(memory.positions), segments], dim=1)

    def _start(self) -> Int[Tensor, "#batch 1"]:
        """Return the position at which each sequence starts, 0 where it has no token."""
        positions, visible = self.tokens.positions, self.tokens.visible
        if visible is None:
            return positions.amin(dim=1, keepdim=True)
        beyond = positions.max() + 1
        start = positions.expand_as(visible).masked_fill(~visible, beyond).amin(1, keepdim=True)
        return start.masked_fill(~visible.any(dim=1, keepdim=True), 0)

    def _visible_keys(self) -> Bool[Tensor, "batch key"] | None:
        visible, memory = self.tokens.visible, self.tokens.memory
        if memory is None:
            return visible
        if visible is None:
            batch, length = memory.visible.shape[0], self.tokens.positions.shape[1]
            visible = torch.ones(batch, length, dtype=torch.bool, device=memory.visible.device)
        return torch.cat([memory.visible, visible], dim=1)

    def _reach(self) -> int | None:
        """Return a bound of all distances: the positions that a row counts lie within its length."""
        if not self.tokens.is_counted or self.tokens.memory is not None:
            return None
        return max(self.tokens.positions.shape[1] - 1, 0)


def all_visible(visible: Bool[Tensor, "batch length"] | None) -> bool:
    """Return whether it is known that nothing is hidden; values are looked at on a CPU, untraced."""
    if visible is None or visible.device.type != "cpu" or torch.compiler.is_compiling():
        return visible is None
    return bool(visible.all())


def _at_queries(relation: GivenPairs | None, selection: Selection | None) -> GivenPairs | None:
    if relation is None or selection is None:
        return relation
    return GivenPairs(selection.take_pairs(relation.pairs))
