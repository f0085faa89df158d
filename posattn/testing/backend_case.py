"""Attention calls of every kind for a backend to be tried on: biases, visibilities, shapes."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import final

import torch
from torch import Tensor

from posattn.backends import AttentionBackend, AttentionCall
from posattn.bias import (
    AttentionBias,
    BucketScores,
    Causal,
    DenseBias,
    DistanceBias,
    HeadDirections,
    KeyScores,
    Padding,
    QueryScores,
    RelativeValues,
    SameDocument,
    SumBias,
    Visibility,
    VisibilityRule,
    Window,
)
from posattn.errors import BackendRefusal
from posattn.positions import Distances, GivenPairs, Relation
from posattn.testing.expect import ensure

NUM_BUCKETS = 5


@final
@dataclass(frozen=True)
class CallShape:
    """The sizes of one call; queries are the last of the keys' positions, or the other way round."""

    batch: int = 2
    heads: int = 3
    queries: int = 5
    keys: int = 7
    head_dim: int = 8

    def distance(self) -> Distances:
        """Return query position minus key position, the same for the whole batch."""
        longest = torch.arange(max(self.queries, self.keys))[None]
        return Distances(longest[:, -self.queries :], longest[:, -self.keys :])

    def bucket(self) -> Relation:
        """Return a bucket for each pair, a function of its distance."""
        return self.distance().mapped(lambda distance: distance.remainder(NUM_BUCKETS))


@final
@dataclass
class Numbers:
    """Random tensors from one seed; it remembers them under their names. They want gradients, or not."""

    dtype: torch.dtype = torch.float64
    learns: bool = True
    leaves: dict[str, Tensor] = field(default_factory=dict)
    generator: torch.Generator = field(default_factory=lambda: torch.Generator().manual_seed(0))

    def leaf(self, name: str, *shape: int) -> Tensor:
        """Return a new random tensor."""
        noise = torch.randn(shape, generator=self.generator, dtype=torch.float64)
        self.leaves[name] = noise.to(self.dtype).requires_grad_(self.learns)
        return self.leaves[name]

    def call(
        self,
        shape: CallShape,
        bias: AttentionBias | None = None,
        visibility: Visibility | None = None,
        relative_values: RelativeValues | None = None,
        dropout: float = 0.0,
    ) -> AttentionCall:
        """Return a call with random queries, keys and values."""
        batch, heads, width = shape.batch, shape.heads, shape.head_dim
        return AttentionCall(
            query=self.leaf("query", batch, heads, shape.queries, width),
            key=self.leaf("key", batch, heads, shape.keys, width),
            value=self.leaf("value", batch, heads, shape.keys, width),
            scale=width**-0.5,
            bias=bias,
            visibility=visibility or Visibility(()),
            relative_values=relative_values,
            dropout=dropout,
        )


BIAS_KINDS = (
    "none",
    "dense",
    "dense by head",
    "dense by key",
    "distance",
    "query scores",
    "key scores",
    "bucket scores",
    "sum",
)


def make_bias(kind: str, numbers: Numbers, shape: CallShape) -> AttentionBias | None:
    """Return a bias of the named kind with random scores."""
    batch, heads, distance = shape.batch, shape.heads, shape.distance()
    bucket = shape.bucket()
    if kind == "none":
        return None
    if kind == "dense":
        return DenseBias(kind, numbers.leaf("bias", batch, heads, shape.queries, shape.keys))
    if kind == "dense by head":
        return DenseBias(kind, numbers.leaf("bias", 1, heads, shape.queries, shape.keys))
    if kind == "dense by key":
        return DenseBias(kind, numbers.leaf("bias", batch, 1, 1, shape.keys))
    if kind == "distance":
        slope = numbers.leaf("slope", heads)
        return DistanceBias(kind, distance, heads, lambda apart, head: slope[head] * apart)
    if kind == "query scores":
        scores = numbers.leaf("query scores", batch, heads, shape.queries, NUM_BUCKETS)
        return QueryScores(kind, scores, bucket)
    if kind == "key scores":
        scores = numbers.leaf("key scores", batch, heads, shape.keys, NUM_BUCKETS)
        return KeyScores(kind, scores, GivenPairs(bucket.pairs.expand(batch, -1, -1)))
    if kind == "bucket scores":
        return BucketScores(kind, numbers.leaf("bucket scores", heads, NUM_BUCKETS), bucket)
    parts = [make_bias(part, numbers, shape) for part in ("query scores", "key scores", "distance")]
    return SumBias(tuple(part for part in parts if part is not None))


def visibilities(shape: CallShape) -> Iterator[tuple[str, Visibility]]:
    """Yield every kind of visibility rule under its name, then all of them at once."""
    distance, batch = shape.distance(), shape.batch
    keys = torch.ones(batch, shape.keys, dtype=torch.bool)
    keys[-1, shape.keys // 2 :] = False
    document = (torch.arange(max(shape.queries, shape.keys)) // 4).expand(batch, -1)
    rules: dict[str, VisibilityRule] = {
        "padding": Padding(keys),
        "documents": SameDocument(document[:, -shape.queries :], document[:, -shape.keys :]),
        "window": Window(distance, 1),
        "causal": Causal(distance),
        "directions of heads": HeadDirections(distance, num_left=1, num_heads=shape.heads),
    }
    yield "everything", Visibility(())
    for name, rule in rules.items():
        yield name, Visibility((rule,))
    yield "all rules at once", Visibility(tuple(rules.values()))


def finest(backend: AttentionBackend) -> torch.dtype:
    """Return float64, or float32 where the backend refuses even a plain call of inference in float64."""
    with torch.no_grad():
        refused = backend.refusals(Numbers(learns=False).call(CallShape()))
    return torch.float32 if refused else torch.float64


def attend(backend: AttentionBackend, call: AttentionCall) -> Tensor | None:
    """Return the attended values, or None if the backend refuses, with reasons and by raising."""
    reasons = backend.refusals(call)
    if not reasons:
        return backend.attend(call)
    ensure(all(reason.strip() for reason in reasons), f"an empty reason among {reasons}")
    try:
        backend.attend(call)
    except BackendRefusal as refusal:
        missing = [reason for reason in reasons if reason not in str(refusal)]
        ensure(not missing, f"the refusal leaves out {missing}: {refusal}")
        return None
    raise AssertionError(f"a call that is refused ({reasons}) runs all the same")
