"""TUPE, untied positional encoding (Ke et al. 2021, arXiv:2006.15595, sections 3.1 and 3.2).

    logits[h, i, j] = (x_i W_Q)(x_j W_K) / sqrt(2 head_dim)  +  p2p[h, i, j]  +  relative[h, i, j]
    p2p[h, i, j]      = (n_i U_Q)(n_j U_K) / sqrt(2 head_dim),   n = LayerNorm(table), row of p_i and of p_j
    relative[h, i, j] = buckets[bucket(p_i - p_j), h]            (TUPE-R; bucket as in T5; not scaled)

The table and U_Q, U_K are shared by all layers, so p2p is computed once per forward. The scale is
1 / sqrt(2 head_dim) for contents and positions, since two terms are summed; TUPE-R keeps it.

`untie_cls` takes the first token of each sequence, at position 0, for [CLS], which summarises the text and
is nowhere in it: p2p is then one number per head from [CLS] to all tokens (itself included), and one
from all others to [CLS]. As in the authors' code these are products of table rows, q_0 . k_0 and q_1 . k_1,
so the table has one row more than positions and position p reads row p + 1; the bias of TUPE-R has two
buckets of its own for them: the first bucket of the right side, which T5 never reaches, and one more at
the end. In a packed block that keeps documents apart each document has a position 0, and its first token is
taken for [CLS]. `untie_cls: false` is the ablation that treats [CLS] as any token ("tie-cls").

Against the paper: U_Q and U_K have biases and the table a LayerNorm, as in the authors' code; the
equations have neither. In the paper the two numbers of [CLS] are free parameters. `relative: null` is TUPE-A.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Literal, final

import torch
from einops import rearrange
from jaxtyping import Float, Int
from pydantic import Field, PositiveInt, model_validator
from torch import Tensor, nn
from typing_extensions import override

from posattn.bias import AttentionBias, BucketScores, total_bias
from posattn.config import FrozenConfig
from posattn.errors import IncompatibleParts
from posattn.lazy import cached_property
from posattn.mechanisms.base import (
    EncoderDims,
    Flops,
    Geometry,
    Mechanism,
    MechanismConfig,
    Site,
    Traits,
    mechanisms,
)
from posattn.mechanisms.weight_cache import WeightCache
from posattn.positions import GivenPairs, Relation, t5_buckets
from posattn.shapes import Pairs


class RelativeBuckets(FrozenConfig):
    """The buckets of TUPE-R, T5's for both directions."""

    num_buckets: Annotated[int, Field(ge=4, multiple_of=2)] = 32  # of both sides together
    max_distance: PositiveInt = 128  # from here on all distances are alike

    @model_validator(mode="after")
    def _reaches_past_the_exact_buckets(self) -> "RelativeBuckets":
        if self.max_distance <= self.num_buckets // 4:
            raise ValueError(
                f"max_distance {self.max_distance} leaves no room for log buckets beyond the "
                f"{self.num_buckets // 4} exact ones; raise it, or lower num_buckets"
            )
        return self


class TupeConfig(MechanismConfig):
    """Options of TUPE."""

    name: Literal["tupe"] = "tupe"
    max_positions: PositiveInt = 512  # tokens that a sequence may have
    untie_cls: bool = True  # the first token of each sequence is [CLS]
    relative: RelativeBuckets | None = None  # TUPE-R; None is TUPE-A

    def num_rows(self) -> int:
        """Return the rows of the table of absolute positions."""
        return self.max_positions + int(self.untie_cls)

    @override
    def traits(self) -> Traits:
        return Traits(adds_bias=True, translation_invariant=False)

    @override
    def fresh_rows_beyond(self, trained: int) -> bool:
        return True

    @override
    def max_length(self) -> int:
        return self.max_positions

    @override
    def softmax_divisor(self, dims: EncoderDims) -> float:
        return float((2 * dims.head_dim) ** 0.5)

    @override
    def card(self, dims: EncoderDims) -> Mapping[str, str]:
        lines = {
            "positions": f"learned table of {self.num_rows()} rows, takes {self.max_positions} tokens",
            "terms": "c2c, p2p" + (", relative" if self.relative else ""),
            "scale": f"1 / sqrt(2 x {dims.head_dim})",
            "projections": "own for positions, one pair for all layers",
            "[CLS]": "the first token, untied from position" if self.untie_cls else "as any token",
        }
        if self.relative is not None:
            lines["relative buckets"] = (
                f"{self.relative.num_buckets}, alike from {self.relative.max_distance} on"
            )
        return lines

    @override
    def flops(self, dims: EncoderDims, num_queries: int, num_keys: int) -> Flops:
        rows, width = max(num_queries, num_keys) + int(self.untie_cls), dims.hidden_size
        return Flops(per_encoder=4 * rows * width * width + 2 * rows * rows * width)


@dataclass(frozen=True)
class Places:
    """Which positions meet in each pair, and the biases that all layers share."""

    mechanism: "Tupe"
    num_positions: int
    query: Int[Tensor, "#batch query"]
    key: Int[Tensor, "#batch key"]
    distance: Relation

    @cached_property
    def bias(self) -> AttentionBias | None:
        """Return the sum of both terms, computed when the first layer asks."""
        query, key = self.query[:, :, None], self.key[:, None, :]
        scores = self.mechanism.absolute_scores(self.num_positions)
        absolute = BucketScores(
            "p2p", scores.flatten(1), GivenPairs(query * self.num_positions + key), shared=True
        )
        return total_bias([absolute, self.mechanism.relative_bias(query, key, self.distance.pairs)])


@final
@mechanisms.register("tupe")
class Tupe(Mechanism[TupeConfig]):
    """Scores between absolute positions by projections of their own, apart from those of contents."""

    Config = TupeConfig

    def __init__(self, config: TupeConfig, dims: EncoderDims) -> None:
        """Build the table, U_Q and U_K, and the buckets of TUPE-R."""
        super().__init__(config, dims)
        size = dims.hidden_size
        self.table = nn.Embedding(config.num_rows(), size)
        self.table_norm = nn.LayerNorm(size, eps=dims.norm_eps)
        self.query_proj = nn.Linear(size, size)
        self.key_proj = nn.Linear(size, size)
        if config.relative is not None:
            rows = config.relative.num_buckets + int(config.untie_cls)
            self.buckets = nn.Embedding(rows, dims.num_heads)
        self.cache = WeightCache()

    @override
    def content_term(self) -> str:
        return "c2c"

    @override
    def prepare(self, geometry: Geometry) -> Places:
        query, key = geometry.query_positions, geometry.key_positions
        last = self._last(geometry)
        # padding has position -1 and is invisible, so it may read any row
        return Places(
            self, max(last, 0) + 1, query.clamp(min=0), key.clamp(min=0), geometry.distance
        )

    def _last(self, geometry: Geometry) -> int:
        """Return the last position; a bound of it where positions are known to count from 0."""
        query, key = geometry.query_positions, geometry.key_positions
        last = geometry.reach
        if last is None:
            last = max((int(part.max()) for part in (query, key) if part.numel()), default=0)
            if key.numel() and int(key.min()) < -1:
                raise IncompatibleParts(
                    f"a key is at position {int(key.min())}, but TUPE's table starts at 0; segment "
                    "memory, whose keys lie before the text, does not go with it"
                )
        if last >= self.config.max_positions:
            raise IncompatibleParts(
                f"position {last} is past the end of TUPE's table, which holds positions 0 to "
                f"{self.config.max_positions - 1}; shorten the input or raise max_positions"
            )
        return last

    @override
    def bias(self, site: Site) -> AttentionBias | None:
        places: Places = site.prepared
        return places.bias

    def absolute_scores(self, num_positions: int) -> Float[Tensor, "heads positions positions"]:
        """Return p2p between the first positions, [CLS] untied."""
        if self.training:  # some optimizers change weights without PyTorch's version counter
            self.cache.clear()
            return self._absolute_scores(num_positions)
        weights = [
            *self.table.parameters(),
            *self.table_norm.parameters(),
            *self.query_proj.parameters(),
            *self.key_proj.parameters(),
        ]
        return self.cache.get(weights, lambda: self._absolute_scores(num_positions), num_positions)

    def relative_bias(
        self,
        query: Int[Tensor, "#batch query 1"],
        key: Int[Tensor, "#batch 1 key"],
        distance: Pairs,
    ) -> BucketScores | None:
        """Return the term of TUPE-R, if it is on; [CLS] has two buckets of its own."""
        relative = self.config.relative
        if relative is None:
            return None
        last = relative.num_buckets
        bucket = t5_buckets(distance, last, relative.max_distance, bidirectional=True)
        if self.config.untie_cls:
            bucket = torch.where(key == 0, last, bucket)
            bucket = torch.where(query == 0, last // 2, bucket)
        return BucketScores("relative", self.buckets.weight.T, GivenPairs(bucket), shared=True)

    def _absolute_scores(self, num_positions: int) -> Float[Tensor, "heads positions positions"]:
        rows = self.table_norm(self.table.weight[: num_positions + int(self.config.untie_cls)])
        split, heads = "r (h d) -> h r d", self.dims.num_heads
        scale = 1.0 / self.config.softmax_divisor(self.dims)
        query_HRD = rearrange(self.query_proj(rows) * scale, split, h=heads)
        key_HRD = rearrange(self.key_proj(rows), split, h=heads)
        scores_HRR = query_HRD @ key_HRD.mT
        if not self.config.untie_cls:
            return scores_HRR
        from_cls, to_cls = scores_HRR[:, 0, 0], scores_HRR[:, 1, 1]
        is_cls = torch.arange(num_positions, device=scores_HRR.device) == 0
        others_HRR = torch.where(is_cls, to_cls[:, None, None], scores_HRR[:, 1:, 1:])
        return torch.where(is_cls[:, None], from_cls[:, None, None], others_HRR)
