"""Relative logits: each query mixes a few trained profiles over distance (Inkling, 2026).

    bias[h, i, j] = r_i^h . P[p_i - p_j]   for |p_i - p_j| < extent, and 0 beyond
    r_i^h = the h-th `rank` channels of W_r x_i,   x_i the states that the queries are projected from

P has one row of `rank` numbers for each distance; W_r, without bias, and P are each layer's own, and heads
share P. Nothing is scaled. It is content-to-position of DeBERTa or Shaw with a key table of low rank, read
by a projection of its own.

No paper is known to us; the code in transformers (models/inkling, InklingRelativeLogits) is the source. It is
causal: P has rows for distances 0 .. extent - 1 and the bias is 0 elsewhere (`causal: true`, which hides
later keys). For both directions, the default here, P has rows for -(extent - 1) .. extent - 1. Inkling's
own rank is 16 and extent 1024, in sliding layers the window; it also multiplies queries and this bias of
far positions by a slowly growing number (log scaling), which is not part of the mechanism here.
"""

from collections.abc import Mapping
from typing import Literal, final

import torch
from einops import rearrange
from pydantic import PositiveInt
from torch import nn
from torch.nn import functional
from typing_extensions import override

from posattn.bias import AttentionBias, Causal, QueryProducts, VisibilityRule
from posattn.mechanisms.base import (
    DISTANCES,
    LINE,
    EncoderDims,
    Flops,
    Geometry,
    Mechanism,
    MechanismConfig,
    Site,
    Traits,
    mechanisms,
)
from posattn.positions import Relation


class RelativeLogitsConfig(MechanismConfig):
    """Options of relative logits."""

    name: Literal["relative_logits"] = "relative_logits"
    rank: PositiveInt = 16  # profiles that each head of each query mixes
    extent: PositiveInt = 1024  # distances from this one on have no bias
    causal: bool = False  # later keys are invisible, as published

    def rows(self, reach: int) -> int:
        """Return the distances told apart up to `reach`, those without a bias as one or two."""
        limit = torch.sym_min(reach, self.extent)
        return limit + 2 if self.causal else 2 * limit + 1

    @override
    def traits(self) -> Traits:
        relations = LINE if self.causal else DISTANCES
        return Traits(adds_bias=True, causal=self.causal, reads_query=True, relations=relations)

    @override
    def fresh_rows_beyond(self, trained: int) -> bool:
        return trained < self.extent

    @override
    def card(self, dims: EncoderDims) -> Mapping[str, str]:
        reach = self.extent - 1
        return {
            "positions": f"distances {0 if self.causal else -reach} to {reach}, no bias beyond",
            "profiles": f"{self.rank}, mixed by each query and head; own in each layer",
        }

    @override
    def flops(self, dims: EncoderDims, num_queries: int, num_keys: int) -> Flops:
        mixed = dims.num_heads * self.rank
        rows = self.rows(max(num_queries, num_keys) - 1)
        return Flops(per_sequence=2 * num_queries * mixed * (dims.hidden_size + rows))


class RelativeLogitsLayer(nn.Module):
    """What each layer owns: the projection to mixtures, and the profiles."""

    def __init__(self, config: RelativeLogitsConfig, dims: EncoderDims) -> None:
        """Build both."""
        super().__init__()
        self.mixture_proj = nn.Linear(dims.hidden_size, dims.num_heads * config.rank, bias=False)
        distances = config.extent if config.causal else 2 * config.extent - 1
        self.profiles = nn.Embedding(distances, config.rank)


@final
@mechanisms.register("relative_logits")
class RelativeLogits(Mechanism[RelativeLogitsConfig]):
    """Scores of each query for each distance, of low rank."""

    Config = RelativeLogitsConfig

    @override
    def make_layer(self) -> RelativeLogitsLayer:
        return RelativeLogitsLayer(self.config, self.dims)

    @override
    def prepare(self, geometry: Geometry) -> tuple[Relation, int]:
        """Return the row of each pair among those that can occur, and the largest distance."""
        limit = torch.sym_min(geometry.relation.largest, self.config.extent)
        lowest = -1 if self.config.causal else -limit
        return geometry.relation.mapped(lambda value: value.clamp(lowest, limit) - lowest), limit

    @override
    def bias(self, site: Site) -> AttentionBias:
        layer, (bucket, limit) = site.layer, site.prepared
        assert isinstance(layer, RelativeLogitsLayer)
        assert site.query_hidden is not None
        # a row of zeros at each end: distances without a bias
        profiles_RD = functional.pad(layer.profiles.weight, (0, 0, 1, 1))
        first = 0 if self.config.causal else self.config.extent - limit
        profiles_RD = profiles_RD[first : first + self.config.rows(limit)]
        mixture = layer.mixture_proj(site.query_hidden)
        mixture_BHQD = rearrange(mixture, "b q (h d) -> b h q d", h=self.dims.num_heads)
        profiles_HRD = profiles_RD.to(mixture.dtype)[None].expand(self.dims.num_heads, -1, -1)
        return QueryProducts("relative", mixture_BHQD, profiles_HRD, bucket)

    @override
    def visibility(self, geometry: Geometry) -> tuple[VisibilityRule, ...]:
        return (Causal(geometry.distance),) if self.config.causal else ()
