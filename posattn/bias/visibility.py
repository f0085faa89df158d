"""Which keys a query may see: boolean, True means visible, never added to anything."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import reduce
from typing import ClassVar, TypeAlias, final, no_type_check

import torch
from jaxtyping import Bool, Int
from torch import Tensor
from typing_extensions import override

from posattn.lazy import cached_property
from posattn.positions import Distances, Relation

VisiblePairs: TypeAlias = Bool[Tensor, "#batch #heads #query key"]
MaskMod: TypeAlias = Callable[[Tensor, Tensor, Tensor, Tensor], Tensor]
"""(batch, head, query index, key index) -> whether the key is visible, as FlexAttention has it."""


FAR = 1 << 30
"""A distance beyond all that occur: no limit."""


@final
@dataclass(frozen=True)
class TokenRule:
    """Visibility stated by token: keys seen at all, documents that must agree, distances allowed.

    `limits` are the lowest and the highest distance that each head sees. `pairs` is what can be said
    by pair only.
    """

    keys: Bool[Tensor, "#batch key"] | None = None
    documents: tuple[Int[Tensor, "batch query"], Int[Tensor, "batch key"]] | None = None
    distance: Distances | None = None
    limits: Int[Tensor, "#heads 2"] | None = None
    pairs: VisiblePairs | None = None

    def joined(self, rule: "VisibilityRule") -> "TokenRule":
        """Return what this and another rule leave visible."""
        other = rule.by_token()
        if other is None or not self._agrees(other):
            pairs = rule.materialize()
            return replace(self, pairs=pairs if self.pairs is None else self.pairs & pairs)
        if self.keys is not None and other.keys is not None:
            other = replace(other, keys=self.keys & other.keys)
        if self.limits is not None and other.limits is not None:
            lowest = torch.maximum(self.limits[:, 0], other.limits[:, 0])
            highest = torch.minimum(self.limits[:, 1], other.limits[:, 1])
            other = replace(other, limits=torch.stack([lowest, highest], dim=1))
        stated = {name: value for name, value in vars(other).items() if value is not None}
        return replace(self, **stated)

    def _agrees(self, other: "TokenRule") -> bool:
        """Return whether both speak of the same positions, and of documents at most once."""
        same = None in (self.distance, other.distance) or self.distance is other.distance
        return same and None in (self.documents, other.documents)


class VisibilityRule(ABC):
    """One reason why a query may not see a key."""

    differs_by_head: ClassVar[bool] = False

    @abstractmethod
    def materialize(self) -> VisiblePairs:
        """Return True where this rule lets the query see the key. Size-1 axes broadcast."""

    def mask_mod(self) -> MaskMod:
        """Return the same rule one pair at a time; unless overridden, looked up among all pairs."""
        pairs = self.materialize()
        batches, heads, queries, keys = pairs.shape

        @no_type_check
        def is_visible(b: Tensor, h: Tensor, i: Tensor, j: Tensor) -> Tensor:
            return pairs[
                b if batches > 1 else 0,
                h if heads > 1 else 0,
                i if queries > 1 else 0,
                j if keys > 1 else 0,
            ]

        mod: MaskMod = is_visible
        return mod

    def by_token(self) -> TokenRule | None:
        """Return the same by token, for backends that want no tensor of all pairs; None if impossible."""
        return None


@final
@dataclass(frozen=True)
class Padding(VisibilityRule):
    """Keys that hold no token are invisible to all."""

    keys: Bool[Tensor, "batch key"]

    @override
    def materialize(self) -> VisiblePairs:
        return self.keys[:, None, None, :]

    @override
    def mask_mod(self) -> MaskMod:
        keys = self.keys

        @no_type_check
        def is_visible(b: Tensor, h: Tensor, i: Tensor, j: Tensor) -> Tensor:
            return keys[b, j]

        mod: MaskMod = is_visible
        return mod

    @override
    def by_token(self) -> TokenRule:
        return TokenRule(keys=self.keys)


@final
@dataclass(frozen=True)
class SameDocument(VisibilityRule):
    """Tokens of a packed block see their own document only."""

    queries: Int[Tensor, "batch query"]
    keys: Int[Tensor, "batch key"]

    @override
    def materialize(self) -> VisiblePairs:
        return (self.queries[:, :, None] == self.keys[:, None, :])[:, None]

    @override
    def mask_mod(self) -> MaskMod:
        queries, keys = self.queries, self.keys

        @no_type_check
        def is_visible(b: Tensor, h: Tensor, i: Tensor, j: Tensor) -> Tensor:
            return queries[b, i] == keys[b, j]

        mod: MaskMod = is_visible
        return mod

    @override
    def by_token(self) -> TokenRule:
        return TokenRule(documents=(self.queries, self.keys))


@final
@dataclass(frozen=True)
class Window(VisibilityRule):
    """Keys further away than `reach` positions, on either side, are invisible."""

    distance: Relation
    reach: int

    @override
    def materialize(self) -> VisiblePairs:
        return (self.distance.pairs.abs() <= self.reach)[:, None]

    @override
    def mask_mod(self) -> MaskMod:
        distance, reach = self.distance.at(), self.reach

        @no_type_check
        def is_visible(b: Tensor, h: Tensor, i: Tensor, j: Tensor) -> Tensor:
            return distance(b, i, j).abs() <= reach

        mod: MaskMod = is_visible
        return mod

    @override
    def by_token(self) -> TokenRule | None:
        return _limited(self.distance, [(-self.reach, self.reach)])


@final
@dataclass(frozen=True)
class Causal(VisibilityRule):
    """Keys after the query are invisible, judged by position and not by index."""

    distance: Relation

    @override
    def materialize(self) -> VisiblePairs:
        return (self.distance.pairs >= 0)[:, None]

    @override
    def mask_mod(self) -> MaskMod:
        distance = self.distance.at()

        @no_type_check
        def is_visible(b: Tensor, h: Tensor, i: Tensor, j: Tensor) -> Tensor:
            return distance(b, i, j) >= 0

        mod: MaskMod = is_visible
        return mod

    @override
    def by_token(self) -> TokenRule | None:
        return _limited(self.distance, [(0, FAR)])


@final
@dataclass(frozen=True)
class HeadDirections(VisibilityRule):
    """The first `num_left` heads see the query's own place and what is left of it, the others right."""

    differs_by_head: ClassVar[bool] = True

    distance: Relation
    num_left: int
    num_heads: int

    @override
    def materialize(self) -> VisiblePairs:
        distance = self.distance.pairs[:, None]
        head = torch.arange(self.num_heads, device=distance.device)
        is_left = (head < self.num_left)[None, :, None, None]
        return (is_left & (distance >= 0)) | (~is_left & (distance <= 0))

    @override
    def mask_mod(self) -> MaskMod:
        distance, num_left = self.distance.at(), self.num_left

        @no_type_check
        def is_visible(b: Tensor, h: Tensor, i: Tensor, j: Tensor) -> Tensor:
            apart = distance(b, i, j)
            return torch.where(h < num_left, apart, -apart) >= 0

        mod: MaskMod = is_visible
        return mod

    @override
    def by_token(self) -> TokenRule | None:
        sides = [(0, FAR) if head < self.num_left else (-FAR, 0) for head in range(self.num_heads)]
        return _limited(self.distance, sides)


@final
@dataclass(frozen=True)
class Visibility:
    """All rules at once: a key is visible if every rule lets it be. Computed once per forward."""

    rules: tuple[VisibilityRule, ...]

    @cached_property
    def pairs(self) -> VisiblePairs | None:
        """Return the visible pairs, or None if every key is visible to every query."""
        if not self.rules:
            return None
        return reduce(torch.logical_and, (rule.materialize() for rule in self.rules))

    @property
    def differs_by_head(self) -> bool:
        """Return whether heads see different keys."""
        return any(rule.differs_by_head for rule in self.rules)

    def mask_mod(self) -> MaskMod:
        """Return the visible pairs one pair at a time."""
        mods = [rule.mask_mod() for rule in self.rules]

        @no_type_check
        def is_visible(b: Tensor, h: Tensor, i: Tensor, j: Tensor) -> Tensor:
            visible = b >= 0
            for mod in mods:
                visible = visible & mod(b, h, i, j)
            return visible

        found: MaskMod = is_visible
        return found

    @cached_property
    def by_token(self) -> TokenRule:
        """Return the same by token as far as possible, so that no tensor of all pairs is needed."""
        return reduce(TokenRule.joined, self.rules, TokenRule())

    def with_rules(self, *rules: VisibilityRule) -> "Visibility":
        """Return these rules and more."""
        return Visibility(self.rules + rules) if rules else self


def _limited(relation: Relation, limits: list[tuple[int, int]]) -> TokenRule | None:
    distance = relation.as_distances()
    if distance is None:
        return None
    device = distance.query_positions.device
    return TokenRule(distance=distance, limits=torch.tensor(limits, device=device))
