"""Which keys a query may see: boolean, True means visible, never added to anything."""

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from functools import cached_property, reduce
from typing import TypeAlias, final

import torch
from jaxtyping import Bool, Int
from torch import Tensor
from typing_extensions import override

from posattn.positions import Distances, Relation

VisiblePairs: TypeAlias = Bool[Tensor, "#batch #heads #query key"]


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

    @abstractmethod
    def materialize(self) -> VisiblePairs:
        """Return True where this rule lets the query see the key. Size-1 axes broadcast."""

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
    def by_token(self) -> TokenRule | None:
        return _limited(self.distance, [(0, FAR)])


@final
@dataclass(frozen=True)
class HeadDirections(VisibilityRule):
    """The first `num_left` heads see the query's own place and what is left of it, the others right."""

    distance: Relation
    num_left: int
    num_heads: int

    @override
    def materialize(self) -> VisiblePairs:
        distance = self.distance.pairs[:, None]
        head = torch.arange(self.num_heads, device=distance.device)
        is_left = (head < self.num_left)[None, :, None, None]
        return torch.where(is_left, distance >= 0, distance <= 0)

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
