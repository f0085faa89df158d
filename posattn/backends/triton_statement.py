"""What an attention call says, taken apart into what the `triton` kernels read; no tensor of all pairs."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeAlias, final

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

    def add(self, part: AttentionBias) -> None:
        """Take in one part of the bias."""
        reader = BIASES.get(type(part))
        if reader is not None:
            reader(self, part)
        else:
            self.problems.append(
                f"a bias of type {type(part).__name__}, which it cannot look up by distance"
            )

    def hide(self, rule: VisibilityRule) -> None:
        """Take in one rule of visibility."""
        reader = RULES.get(type(rule))
        if reader is not None:
            reader(self, rule)
        else:
            self.problems.append(
                f"a visibility rule of type {type(rule).__name__}, which it has no kernel for"
            )

    def look_up(self, into: list[Scored], name: str, scores: Tensor, bucket: Relation) -> None:
        """Take in scores that are looked up by a function of the distance."""
        if isinstance(bucket, OfDistance):
            into.append(Scored(scores, bucket.row))
            self.judge(f"bias '{name}'", bucket.distances, self.distances)
        else:
            self.problems.append(
                f"the buckets of '{name}' are not a function of the distance (eager, sdpa take any)"
            )

    def judge(self, what: str, distance: Relation, into: list[Distances]) -> None:
        """Take in the distances that something is about."""
        if not isinstance(distance, Distances):
            self.problems.append(f"the {what} is not about distances between positions")
        elif (
            distance.query_positions.is_floating_point()
            or distance.key_positions.is_floating_point()
        ):
            self.problems.append(f"the {what} is about positions that are no integers")
        else:
            into.append(distance)


def _dense(said: Statement, part: DenseBias) -> None:
    if part.value.shape[2] == 1:
        said.key_biases.append(part.value)
    else:
        said.problems.append(
            f"the bias '{part.name}' is a tensor with an axis of {part.value.shape[2]} queries (it takes "
            "scores by distance, and biases of keys)"
        )


def _window(said: Statement, rule: Window) -> None:
    said.windows.append(rule.reach)
    said.judge("window", rule.distance, said.seen)


def _causal(said: Statement, rule: Causal) -> None:
    said.is_causal = True
    said.judge("causal rule", rule.distance, said.seen)


def _directions(said: Statement, rule: HeadDirections) -> None:
    said.directions.append(rule.num_left)
    said.judge("direction of heads", rule.distance, said.seen)


Reader: TypeAlias = Callable[[Statement, Any], None]
BIASES: Mapping[type[AttentionBias], Reader] = {
    QueryScores: lambda said, it: said.look_up(said.by_query, it.name, it.scores, it.bucket),
    KeyScores: lambda said, it: said.look_up(said.by_key, it.name, it.scores, it.bucket),
    BucketScores: lambda said, it: said.look_up(said.by_head, it.name, it.scores, it.bucket),
    DenseBias: _dense,
}
RULES: Mapping[type[VisibilityRule], Reader] = {
    Padding: lambda said, it: said.visible.append(it.keys),
    SameDocument: lambda said, it: said.documents.append(it),
    Window: _window,
    Causal: _causal,
    HeadDirections: _directions,
}


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
