"""A bias looked up by bucket in per-token scores (DeBERTa, Shaw, T5, Transformer-XL)."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import final, no_type_check

from jaxtyping import Float
from torch import Tensor
from typing_extensions import override

from posattn.bias.base import AttentionBias, ScoreMod
from posattn.lazy import cached_property
from posattn.positions import Relation
from posattn.shapes import Logits


@final
@dataclass(frozen=True)
class QueryScores(AttentionBias):
    """`bias[b, h, i, j] = scores[b, h, i, bucket[b, i, j]]`: how each query likes each bucket."""

    name: str
    scores: Float[Tensor, "batch heads query buckets"]
    bucket: Relation

    @override
    def learns(self) -> bool:
        return self.scores.requires_grad

    @override
    def materialize(self) -> Logits:
        batch, heads = self.scores.shape[:2]
        bucket_BHQK = self.bucket.pairs[:, None].expand(batch, heads, -1, -1)
        return self.scores.gather(-1, bucket_BHQK)

    @override
    def terms(self) -> Mapping[str, Logits]:
        return {self.name: self.materialize()}

    @override
    def score_mod(self) -> ScoreMod:
        scores, bucket = self.scores, self.bucket.at()

        @no_type_check
        def add_bias(score: Tensor, b: Tensor, h: Tensor, i: Tensor, j: Tensor) -> Tensor:
            return score + scores[b, h, i, bucket(b, i, j)]

        mod: ScoreMod = add_bias
        return mod


@final
@dataclass(frozen=True)
class KeyScores(AttentionBias):
    """`bias[b, h, i, j] = scores[b, h, j, bucket[b, i, j]]`: how each key likes each bucket."""

    name: str
    scores: Float[Tensor, "batch heads key buckets"]
    bucket: Relation

    @override
    def learns(self) -> bool:
        return self.scores.requires_grad

    @override
    def materialize(self) -> Logits:
        batch, heads = self.scores.shape[:2]
        bucket_BHKQ = self.bucket.pairs.transpose(1, 2)[:, None].expand(batch, heads, -1, -1)
        return self.scores.gather(-1, bucket_BHKQ).transpose(-1, -2)

    @override
    def terms(self) -> Mapping[str, Logits]:
        return {self.name: self.materialize()}

    @override
    def score_mod(self) -> ScoreMod:
        scores, bucket = self.scores, self.bucket.at()

        @no_type_check
        def add_bias(score: Tensor, b: Tensor, h: Tensor, i: Tensor, j: Tensor) -> Tensor:
            return score + scores[b, h, j, bucket(b, i, j)]

        mod: ScoreMod = add_bias
        return mod


@final
@dataclass(frozen=True)
class BucketScores(AttentionBias):
    """`bias[b, h, i, j] = scores[h, bucket[b, i, j]]`: the same for all tokens (T5, p2p).

    `shared` says that several layers of one forward are handed this object: the whole bias is then
    computed once and kept, for one backward pass.
    """

    name: str
    scores: Float[Tensor, "heads buckets"]
    bucket: Relation
    shared: bool = False

    @cached_property
    def _whole(self) -> Logits:
        return self._compute()

    @cached_property
    def _by_distance(self) -> Float[Tensor, "heads distances"] | None:
        return self._compute_by_distance()

    def _compute_by_distance(self) -> Float[Tensor, "heads distances"] | None:
        stated = self.bucket.of_distance()
        return None if stated is None else self.scores.index_select(1, stated.row)

    def by_distance(self) -> Float[Tensor, "heads distances"] | None:
        """Return the bias at the distances -reach .. reach; None if it is no function of the distance."""
        return self._by_distance if self.shared else self._compute_by_distance()

    def _compute(self) -> Logits:
        return self.scores[:, self.bucket.pairs].transpose(0, 1)  # [H, B, Q, K] -> [B, H, Q, K]

    @override
    def learns(self) -> bool:
        return self.scores.requires_grad

    @override
    def materialize(self) -> Logits:
        return self._whole if self.shared else self._compute()

    @override
    def terms(self) -> Mapping[str, Logits]:
        return {self.name: self.materialize()}

    @override
    def score_mod(self) -> ScoreMod:
        scores, bucket = self.scores, self.bucket.at()

        @no_type_check
        def add_bias(score: Tensor, b: Tensor, h: Tensor, i: Tensor, j: Tensor) -> Tensor:
            return score + scores[h, bucket(b, i, j)]

        mod: ScoreMod = add_bias
        return mod
