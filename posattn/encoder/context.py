"""What all layers of one forward share: who is where, who sees whom, and what was before."""

from dataclasses import dataclass, replace
from typing import final

import torch
from jaxtyping import Bool, Int, Num
from torch import Tensor

from posattn.bias import Padding, SameDocument, VisibilityRule, Window
from posattn.encoder.memory import SegmentMemory
from posattn.encoder.position import PositionStack, Prepared
from posattn.encoder.selection import Selection
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
    is_contiguous: bool  # positions are 0, 1, 2, ..
    memory: SegmentMemory | None
    rows: int  # sequences in the batch
    relation: GivenPairs | None = None  # of all pairs, where the relation is given
    segments: Int[Tensor, "batch length"] | None = None  # where a mechanism reads them


@final
class Context:
    """The tokens of one forward with what the mechanisms prepared for them."""

    def __init__(
        self, tokens: Tokens, stack: PositionStack, window: int | None, training: bool
    ) -> None:
        """Place the tokens and prepare every mechanism for queries at all of them."""
        self.tokens = tokens
        self.places = Places(tokens.positions, tokens.documents, training, tokens.rows)
        self.placed = stack.place(self.places)
        self._stack = stack
        self._window = window
        self.prepared = self._prepare(None)

    def for_queries(self, selection: Selection) -> Prepared:
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

    def _prepare(self, selection: Selection | None) -> Prepared:
        """Prepare for queries at the selected places, or at all."""
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
        window = None if self._window is None else Window(geometry.distance, self._window // 2)
        return self._stack.prepare(geometry, tuple(rules), window, placed)

    def _given(self, selection: Selection | None) -> GivenPairs | None:
        relation = self.tokens.relation
        if relation is None or selection is None:
            return relation
        return GivenPairs(selection.take_pairs(relation.pairs))

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
        if not self.tokens.is_contiguous or self.tokens.memory is not None:
            return None
        return max(self.tokens.positions.shape[1] - 1, 0)
