"""What an attention call says, taken apart into what the `triton` kernels read; no tensor of all pairs."""

from dataclasses import dataclass, field
from functools import singledispatchmethod
from typing import NamedTuple, final

import torch
from torch import Tensor

from posattn.backends.base import AttentionCall
from posattn.bias import (
    AttentionBias,
    BucketScores,
    Causal,
    DenseBias,
    HeadDirections,
    KeyScores,
    Padding,
    QueryScores,
    SameDocument,
    VisibilityRule,
    Window,
)
from posattn.positions import Distances, OfDistance, Relation


class Scored(NamedTuple):
    """Scores by bucket and the bucket of each distance; [heads, buckets] if all tokens share them."""

    scores: Tensor
    row: Tensor


@final
@dataclass
class Statement:
    """Bias and visibility of one call; `problems` are what the kernels cannot do."""

    by_query: list[Scored] = field(default_factory=list)
    by_key: list[Scored] = field(default_factory=list)
    by_head: list[Scored] = field(default_factory=list)
    key_biases: list[Tensor] = field(default_factory=list)
    distances: list[Distances] = field(default_factory=list)
    seen: list[Distances] = field(default_factory=list)
    visible: list[Tensor] = field(default_factory=list)
    documents: list[SameDocument] = field(default_factory=list)
    windows: list[int] = field(default_factory=list)
    is_causal: bool = False
    directions: list[int] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)

    @classmethod
    def of(cls, call: AttentionCall) -> "Statement":
        """Return what the call says."""
        said = cls()
        for part in call.bias.parts() if call.bias is not None else ():
            said.add(part)
        for rule in call.visibility.rules:
            said.hide(rule)
        for what, found in (("bias", said.distances), ("visibility", said.seen)):
            if not all(_are_same(found[0], other) for other in found[1:]):
                said.problems.append(
                    f"the {what} is about distances of several kinds (it takes one)"
                )
        for what, several in (
            ("document", len(said.documents)),
            ("direction", len(set(said.directions))),
        ):
            if several > 1:
                said.problems.append(f"several {what} rules (it takes one)")
        return said

    @property
    def scored(self) -> list[Scored]:
        """Return all scores by distance: by query, by key, by head."""
        return [*self.by_query, *self.by_key, *self.by_head]

    @property
    def learns(self) -> bool:
        """Return whether a gradient is wanted of scores by distance."""
        return torch.is_grad_enabled() and any(part.scores.requires_grad for part in self.scored)

    @singledispatchmethod
    def add(self, part: AttentionBias) -> None:
        """Take in one part of the bias."""
        self.problems.append(
            f"a bias of type {type(part).__name__}, which it cannot look up by distance"
        )

    @add.register
    def _(self, part: QueryScores) -> None:
        self._look_up(self.by_query, part.name, part.scores, part.bucket)

    @add.register
    def _(self, part: KeyScores) -> None:
        self._look_up(self.by_key, part.name, part.scores, part.bucket)

    @add.register
    def _(self, part: BucketScores) -> None:
        self._look_up(self.by_head, part.name, part.scores, part.bucket)

    @add.register
    def _(self, part: DenseBias) -> None:
        if part.value.shape[2] == 1:
            self.key_biases.append(part.value)
        else:
            self.problems.append(
                f"the bias '{part.name}' is a tensor with an axis of {part.value.shape[2]} queries (it takes "
                "scores by distance, and biases of keys)"
            )

    @singledispatchmethod
    def hide(self, rule: VisibilityRule) -> None:
        """Take in one rule of visibility."""
        self.problems.append(
            f"a visibility rule of type {type(rule).__name__}, which it has no kernel for"
        )

    @hide.register
    def _(self, rule: Padding) -> None:
        self.visible.append(rule.keys)

    @hide.register
    def _(self, rule: SameDocument) -> None:
        self.documents.append(rule)

    @hide.register
    def _(self, rule: Window) -> None:
        self.windows.append(rule.reach)
        self._judge("window", rule.distance)

    @hide.register
    def _(self, rule: Causal) -> None:
        self.is_causal = True
        self._judge("causal rule", rule.distance)

    @hide.register
    def _(self, rule: HeadDirections) -> None:
        self.directions.append(rule.num_left)
        self._judge("direction of heads", rule.distance)

    def _look_up(self, into: list[Scored], name: str, scores: Tensor, bucket: Relation) -> None:
        if not isinstance(bucket, OfDistance):
            self.problems.append(
                f"the buckets of '{name}' are not a function of the distance (eager, sdpa take any)"
            )
            return
        into.append(Scored(scores, bucket.row))
        self._judge(f"bias '{name}'", bucket.distances, self.distances)

    def _judge(self, what: str, distance: Relation, into: list[Distances] | None = None) -> None:
        kept = self.seen if into is None else into
        if not isinstance(distance, Distances):
            self.problems.append(f"the {what} is not about distances between positions")
        elif any(
            one.is_floating_point() for one in (distance.query_positions, distance.key_positions)
        ):
            self.problems.append(f"the {what} is about positions that are no integers")
        else:
            kept.append(distance)


def _are_same(one: Distances, other: Distances) -> bool:
    """Return whether both are the same distances; compares positions only if they are other tensors."""
    pairs = (
        (one.query_positions, other.query_positions),
        (one.key_positions, other.key_positions),
    )
    if all(mine is its for mine, its in pairs):
        return one.reach == other.reach
    if torch.compiler.is_compiling():
        return False
    return one.largest == other.largest and all(
        mine.shape == its.shape and torch.equal(mine, its) for mine, its in pairs
    )
