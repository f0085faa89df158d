"""Relative position bias of T5 (Raffel et al. 2020, arXiv:1910.10683, section 2.1).

    logits[h, i, j] = q_i . k_j / divisor + table[bucket(p_i - p_j), h]

One scalar per bucket and head, in one table that all layers share (T5 keeps it in its first layer).
Buckets are exact near by and logarithmic up to `max_distance`, beyond which all are alike; see
positions/buckets.py. `bidirectional` is the encoder's form. `bidirectional: false` is the decoder's: all
buckets are for keys to the left, and later keys are invisible.

Against the paper and the released code: `scale: none` is T5's, whose queries and keys are not divided by
anything (its projections are initialised the smaller for it); `scale: head_dim`, the default here,
divides by sqrt(head_dim) as all other mechanisms do, so that a comparison varies the bias alone. The
table starts at N(0, initializer_range) like all tables; T5 starts it at N(0, 1 / hidden_size). Of 32
bidirectional buckets row 16 is never reached, and distances from 91 on share the last row of their side.
x-transformers multiplies the bias by sqrt(head_dim), which is the same function of a smaller table.
Buckets that training lengths never reached keep their first values: beyond them the bias is noise.
"""

from collections.abc import Mapping
from typing import Annotated, Literal, final

import torch
from pydantic import Field, PositiveInt, model_validator
from torch import nn
from typing_extensions import override

from posattn.bias import AttentionBias, BucketScores, Causal, VisibilityRule, total_bias
from posattn.mechanisms.base import (
    ANY_RELATION,
    LINE,
    EncoderDims,
    Geometry,
    Mechanism,
    MechanismConfig,
    Site,
    Traits,
    mechanisms,
)
from posattn.positions import t5_buckets


class T5Config(MechanismConfig):
    """Options of T5's relative position bias."""

    name: Literal["t5"] = "t5"
    num_buckets: Annotated[int, Field(ge=2)] = 32  # of both sides together
    max_distance: PositiveInt = 128  # from here on all distances are alike
    bidirectional: bool = True  # false: keys after the query are invisible
    scale: Literal["head_dim", "none"] = "head_dim"  # of the query-key products; none is T5's own

    @model_validator(mode="after")
    def _has_room_for_both_kinds_of_buckets(self) -> "T5Config":
        if self.bidirectional and (self.num_buckets % 2 or self.num_buckets < 4):
            raise ValueError(
                f"num_buckets {self.num_buckets} cannot be split between two sides with at least one "
                "exact and one log bucket each; choose an even number from 4 on"
            )
        if self.max_distance <= self.num_exact():
            raise ValueError(
                f"max_distance {self.max_distance} leaves no room for log buckets beyond the "
                f"{self.num_exact()} exact ones; raise it, or lower num_buckets"
            )
        return self

    def num_exact(self) -> int:
        """Return how many near distances of one side have a bucket of their own, 0 included."""
        return self.num_buckets // (4 if self.bidirectional else 2)

    @override
    def traits(self) -> Traits:
        relations = ANY_RELATION if self.bidirectional else LINE
        return Traits(adds_bias=True, causal=not self.bidirectional, relations=relations)

    @override
    def fresh_rows_beyond(self, trained: int) -> bool:
        ends = torch.tensor([trained - 1, max(trained - 1, self.max_distance)])
        rows = t5_buckets(ends, self.num_buckets, self.max_distance, self.bidirectional)
        return bool(rows[0] != rows[1])

    @override
    def problems(self, dims: EncoderDims) -> list[str]:
        exact = self.num_buckets // 2
        if self.is_split(dims) or self.max_distance > exact:
            return []
        return [
            f"max_distance {self.max_distance} leaves no room for log buckets beyond the {exact} exact "
            "ones of distances that are never negative; raise it, or lower num_buckets"
        ]

    def is_split(self, dims: EncoderDims) -> bool:
        """Return whether half of the buckets are for negative distances."""
        return self.bidirectional and dims.relation.has_sign()

    @override
    def softmax_divisor(self, dims: EncoderDims) -> float | None:
        return 1.0 if self.scale == "none" else None

    @override
    def card(self, dims: EncoderDims) -> Mapping[str, str]:
        sides = "both directions" if self.bidirectional else "keys to the left only, causal"
        if self.bidirectional and not self.is_split(dims):
            sides = "distances from 0 on"
        exact = self.num_buckets // (4 if self.is_split(dims) else 2)
        scale = (
            "1 (queries and keys are not scaled)"
            if self.scale == "none"
            else (f"1 / sqrt({dims.head_dim})")
        )
        return {
            "positions": f"{self.num_buckets} buckets for {sides}, exact below {exact}, "
            f"alike from {self.max_distance} on",
            "table": f"{dims.relation.table_rows(self.num_buckets)} x {dims.num_heads}, one for all "
            "layers",
            "scale": scale,
        }


@final
@mechanisms.register("t5")
class T5Bias(Mechanism[T5Config]):
    """A learned scalar for each bucket of distances and each head, the same in all layers."""

    Config = T5Config

    def __init__(self, config: T5Config, dims: EncoderDims) -> None:
        """Build the table that all layers share."""
        super().__init__(config, dims)
        rows = dims.relation.table_rows(config.num_buckets)
        self.table = nn.Embedding(rows, dims.num_heads)

    @override
    def prepare(self, geometry: Geometry) -> AttentionBias | None:
        config, relation, split = self.config, self.dims.relation, self.config.is_split(self.dims)
        buckets = relation.buckets(
            geometry,
            config.num_buckets,
            lambda distance: t5_buckets(distance, config.num_buckets, config.max_distance, split),
        )
        scores = relation.with_blank(self.table.weight).T
        return total_bias([BucketScores("distance", scores, rows, shared=True) for rows in buckets])

    @override
    def bias(self, site: Site) -> AttentionBias | None:
        prepared: AttentionBias | None = site.prepared
        return prepared

    @override
    def visibility(self, geometry: Geometry) -> tuple[VisibilityRule, ...]:
        return () if self.config.bidirectional else (Causal(geometry.distance),)
