"""Which keys a query may see: boolean, True means visible, never added to anything."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property, reduce
from typing import TypeAlias, final

import torch
from jaxtyping import Bool, Int
from torch import Tensor
from typing_extensions import override

from posattn.positions import Relation

VisiblePairs: TypeAlias = Bool[Tensor, "#batch #heads #query key"]


class VisibilityRule(ABC):
    """One reason why a query may not see a key."""

    @abstractmethod
    def materialize(self) -> VisiblePairs:
        """Return True where this rule lets the query see the key. Size-1 axes broadcast."""


@final
@dataclass(frozen=True)
class Padding(VisibilityRule):
    """Keys that hold no token are invisible to all."""

    keys: Bool[Tensor, "batch key"]

    @override
    def materialize(self) -> VisiblePairs:
        return self.keys[:, None, None, :]


@final
@dataclass(frozen=True)
class SameDocument(VisibilityRule):
    """Tokens of a packed block see their own document only."""

    queries: Int[Tensor, "batch query"]
    keys: Int[Tensor, "batch key"]

    @override
    def materialize(self) -> VisiblePairs:
        return (self.queries[:, :, None] == self.keys[:, None, :])[:, None]


@final
@dataclass(frozen=True)
class Window(VisibilityRule):
    """Keys further away than `reach` positions, on either side, are invisible."""

    distance: Relation
    reach: int

    @override
    def materialize(self) -> VisiblePairs:
        return (self.distance.pairs.abs() <= self.reach)[:, None]


@final
@dataclass(frozen=True)
class Causal(VisibilityRule):
    """Keys after the query are invisible, judged by position and not by index."""

    distance: Relation

    @override
    def materialize(self) -> VisiblePairs:
        return (self.distance.pairs >= 0)[:, None]


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

    def with_rules(self, *rules: VisibilityRule) -> "Visibility":
        """Return these rules and more."""
        return Visibility(self.rules + rules) if rules else self
