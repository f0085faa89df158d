"""Attention with linear biases, ALiBi, in an encoder (Press et al. 2021, arXiv:2108.12409).

    bias[h, i, j] = -slope_h * |p_i - p_j|

The paper is about causal decoders. In encoders four forms are in use, and they are different models:

    symmetric   as above; cannot tell left from right        MosaicBERT, Jina-BERT v2, llama.cpp
    halves      half of the heads see j <= i only, the other half j >= i only, the diagonal in both,
                slopes of num_heads / 2 used twice            issue 5 of the authors' repository; FAT5
    separate    own slopes for keys to the left and to the right, nothing hidden; here the slopes to
                the right are the left ones in reversed order of heads (no published rule exists)
    offset      symmetric, and keys to the left raised by 0.5  DeepMind's randomized positions

Slopes follow the authors' code for any number of heads (`slopes: authors`); `plain` is the paper's
sentence (attention-gym, fairseq2), a different model unless the number of heads is a power of two;
`end_to_end` runs from 1/2 to 1/256 whatever the heads (what IBM's foundation-model-stack aims at). At 12
heads the second slopes are 0.25, 0.397 and 0.322. Slopes are not trained; `learned_slopes` trains their
logarithms, which keeps them positive.
"""

from collections.abc import Mapping
from typing import Literal, final

import torch
from torch import Tensor, nn
from typing_extensions import override

from posattn.bias import DistanceBias, HeadDirections, VisibilityRule
from posattn.mechanisms.base import (
    DISTANCES,
    LINE,
    EncoderDims,
    Geometry,
    Mechanism,
    MechanismConfig,
    Site,
    Traits,
    mechanisms,
)
from posattn.positions import authors_slopes, end_to_end_slopes, plain_slopes


class ALiBiConfig(MechanismConfig):
    """Options of ALiBi."""

    name: Literal["alibi"] = "alibi"
    variant: Literal["symmetric", "halves", "separate", "offset"] = "symmetric"
    slopes: Literal["authors", "plain", "end_to_end"] = "authors"
    learned_slopes: bool = False

    @override
    def traits(self) -> Traits:
        return Traits(
            adds_bias=True,
            knows_direction=self.variant != "symmetric",
            relations=LINE if self.variant == "halves" else DISTANCES,
        )

    @override
    def problems(self, dims: EncoderDims) -> list[str]:
        if self.variant == "halves" and dims.num_heads % 2:
            return [f"alibi variant 'halves' needs an even number of heads, not {dims.num_heads}"]
        if self.variant == "separate" and dims.num_heads < 2:
            return ["alibi variant 'separate' with 1 head has equal slopes left and right; use 2"]
        return []

    @override
    def card(self, dims: EncoderDims) -> Mapping[str, str]:
        left, right = self.first_slopes(dims)
        shown = ", ".join(f"{slope:.4g}" for slope in left)
        lines = {
            "positions": f"linear penalty on distance, variant {self.variant}, unlimited",
            "slopes": f"{self.slopes}: {shown}" + (" (trained)" if self.learned_slopes else ""),
        }
        if left != right:
            lines["slopes to the right"] = ", ".join(f"{slope:.4g}" for slope in right)
        return lines

    def first_slopes(self, dims: EncoderDims) -> tuple[list[float], list[float]]:
        """Return the slopes of each head for keys to the left and to the right."""
        rule = {
            "authors": authors_slopes,
            "plain": plain_slopes,
            "end_to_end": end_to_end_slopes,
        }[self.slopes]
        if self.variant == "halves":
            both = rule(dims.num_heads // 2) * 2
            return both, both
        left = rule(dims.num_heads)
        return left, left[::-1] if self.variant == "separate" else left


@final
@mechanisms.register("alibi")
class ALiBi(Mechanism[ALiBiConfig]):
    """A penalty on distance with a slope per head, the same in all layers."""

    Config = ALiBiConfig

    def __init__(self, config: ALiBiConfig, dims: EncoderDims) -> None:
        """Build the logarithms of the slopes, if they are learned."""
        super().__init__(config, dims)
        if config.learned_slopes:
            left, right = config.first_slopes(dims)
            self.log_slopes = nn.Parameter(torch.tensor(left).log())
            if config.variant == "separate":
                self.log_slopes_right = nn.Parameter(torch.tensor(right).log())

    @override
    def prepare(self, geometry: Geometry) -> DistanceBias:
        left, right = self._slopes(geometry.query_positions.device)
        lift = 0.5 if self.config.variant == "offset" else 0.0

        def penalty(distance: Tensor, head: Tensor) -> Tensor:
            to_left = distance > 0  # the key is left of the query
            slope = torch.where(to_left, left[head], right[head])
            return lift * to_left - slope * distance.abs()

        heads = self.dims.num_heads
        return DistanceBias("distance", geometry.relation, heads, penalty, shared=True)

    @override
    def bias(self, site: Site) -> DistanceBias:
        prepared: DistanceBias = site.prepared
        return prepared

    @override
    def visibility(self, geometry: Geometry) -> tuple[VisibilityRule, ...]:
        if self.config.variant != "halves":
            return ()
        heads = self.dims.num_heads
        return (HeadDirections(geometry.distance, num_left=heads // 2, num_heads=heads),)

    def _slopes(self, device: torch.device) -> tuple[Tensor, Tensor]:
        """Return the slopes to the left and to the right in float32, or in float64 if so trained."""
        if not self.config.learned_slopes:
            left, right = self.config.first_slopes(self.dims)
            return torch.tensor(left, device=device), torch.tensor(right, device=device)
        exact = torch.promote_types(self.log_slopes.dtype, torch.float32)
        left_slopes = self.log_slopes.to(exact).exp()
        if self.config.variant != "separate":
            return left_slopes, left_slopes
        return left_slopes, self.log_slopes_right.to(exact).exp()
