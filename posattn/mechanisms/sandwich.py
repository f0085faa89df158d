"""Sandwich (Chi et al. 2023, arXiv:2212.10356): the inner product of two sinusoids, and nothing learned.

    bias[h, i, j] = (1 / c_h) sum_t cos((p_i - p_j) base ** (-2 t / width)),   t = 0 .. width / 2 - 1
    c_h           = 8 h / num_heads,   h = 1 .. num_heads

The sum is the inner product of the sinusoidal embeddings of both positions, `width` wide (the paper's
d-bar, 128). c_h is the paper's compression ratio: it makes each head decay at its own pace, as ALiBi's
slopes do. The bias is symmetric: it cannot tell left from right. `bidirectional: false` is the
published use, in causal models, where later keys are invisible.

Against the paper: it writes the sum from t = 1; the sinusoids whose product it is start at t = 0, as
here. One public copy leaves the cosine out, which makes another mechanism, linear in distance. Far away the
bias stays between -width / (2 c_h) and width / (2 c_h) and is not monotone. There is no released
original to compare with: the tests hold it to the formula, and to the product of the two embeddings.
"""

from collections.abc import Mapping
from typing import Annotated, Literal, NamedTuple, final

import torch
from jaxtyping import Float
from pydantic import Field, PositiveFloat, model_validator
from torch import Tensor
from typing_extensions import override

from posattn.bias import BucketScores, Causal, VisibilityRule
from posattn.mechanisms.base import (
    EncoderDims,
    Geometry,
    Mechanism,
    MechanismConfig,
    Site,
    Traits,
    mechanisms,
)
from posattn.positions import Relation, angles, inverse_frequencies


class SandwichConfig(MechanismConfig):
    """Options of Sandwich."""

    name: Literal["sandwich"] = "sandwich"
    width: Annotated[int, Field(ge=2)] = 128  # of the sinusoids, even
    base: PositiveFloat = 10000.0
    bidirectional: bool = True  # false: keys after the query are invisible

    @model_validator(mode="after")
    def _is_even(self) -> "SandwichConfig":
        if self.width % 2:
            raise ValueError(
                f"width {self.width} is odd, but every frequency has a sine and a cosine; "
                f"use {self.width - 1} or {self.width + 1}"
            )
        return self

    @override
    def traits(self) -> Traits:
        return Traits(
            adds_bias=True, causal=not self.bidirectional, knows_direction=not self.bidirectional
        )

    @override
    def card(self, dims: EncoderDims) -> Mapping[str, str]:
        sides = (
            "symmetric: cannot tell left from right"
            if self.bidirectional
            else "causal: later keys are invisible"
        )
        ratios = ", ".join(f"{ratio:.4g}" for ratio in compression_ratios(dims.num_heads))
        return {
            "positions": f"inner product of sinusoids {self.width} wide, base {self.base:g}, "
            f"unlimited, {sides}",
            "compression": f"divided by {ratios}",
        }


def compression_ratios(num_heads: int) -> list[float]:
    """Return 8 h / num_heads for h = 1 .. num_heads, by which the sums are divided."""
    return [8.0 * head / num_heads for head in range(1, num_heads + 1)]


class Sums(NamedTuple):
    """The bias of each head at distances 0, 1, .., in float64, and the size of each pair's distance."""

    scores: Float[Tensor, "heads buckets"]
    bucket: Relation


@final
@mechanisms.register("sandwich")
class Sandwich(Mechanism[SandwichConfig]):
    """A fixed bias that decays with distance, at another pace in each head, the same in all layers."""

    Config = SandwichConfig

    @override
    def prepare(self, geometry: Geometry) -> Sums:
        config, device = self.config, geometry.query_positions.device
        frequency = inverse_frequencies(config.width // 2, config.width, config.base)
        sizes = torch.arange(geometry.distance.largest + 1, device=device)
        sums_R = angles(sizes, frequency).cos().sum(-1)
        ratios = compression_ratios(self.dims.num_heads)
        return Sums(
            sums_R / sums_R.new_tensor(ratios)[:, None], geometry.distance.mapped(torch.abs)
        )

    @override
    def bias(self, site: Site) -> BucketScores:
        sums: Sums = site.prepared
        exact = torch.promote_types(site.heads.query.dtype, torch.float32)
        return BucketScores("distance", sums.scores.to(exact), sums.bucket)

    @override
    def visibility(self, geometry: Geometry) -> tuple[VisibilityRule, ...]:
        return () if self.config.bidirectional else (Causal(geometry.distance),)
