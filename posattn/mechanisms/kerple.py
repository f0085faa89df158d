"""KERPLE, kernelized relative positions (Chi et al. 2022, arXiv:2205.09921, section 4).

    log:    bias[h, i, j] = -p_h ln(1 + a_h |p_i - p_j|),    p_h > 0, a_h > 0
    power:  bias[h, i, j] = -a_h |p_i - p_j| ** p_h,         a_h > 0, 0 < p_h < 2

Two numbers per head, shared by all layers. The bias is symmetric: it cannot tell left from right.
`bidirectional: false` is the published use, in causal models, where later keys are invisible.

Against the released code: there p and a are parameters that every forward overwrites by their values
clamped to 0.01 and more (p to at most 2 in the power kernel), so a parameter that reaches the border
gets pushed back behind the optimizer's back. Here the parameters are logarithms, and for the power
kernel's p the logit of p / 2: every value of a parameter is legal and has a gradient. The code draws p
from U(0, 2) and a from U(0, 1); here the heads are spread evenly over the same rectangle, p in equal steps
and a along the golden ratio, so that first values need no chance. The code's further weight kernels,
which multiply the logits and are off in its log form, are not offered.
"""

import math
from collections.abc import Mapping
from typing import Literal, NamedTuple, final

import torch
from torch import Tensor, nn
from typing_extensions import override

from posattn.bias import Causal, DistanceBias, VisibilityRule
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

GOLDEN_RATIO = (math.sqrt(5.0) - 1.0) / 2.0
SMALLEST = 0.01  # first value of a, as the released code clamps it


class Kernel(NamedTuple):
    """The two numbers of each head, as the paper names them."""

    p: Tensor
    a: Tensor


class KerpleConfig(MechanismConfig):
    """Options of KERPLE."""

    name: Literal["kerple"] = "kerple"
    kernel: Literal["log", "power"] = "log"
    bidirectional: bool = True  # false: keys after the query are invisible

    def first_values(self, num_heads: int) -> tuple[list[float], list[float]]:
        """Return the first p and a of each head."""
        p = [2.0 * (head + 0.5) / num_heads for head in range(num_heads)]
        a = [max((head + 1) * GOLDEN_RATIO % 1.0, SMALLEST) for head in range(num_heads)]
        return p, a

    @override
    def traits(self) -> Traits:
        return Traits(
            adds_bias=True,
            causal=not self.bidirectional,
            knows_direction=not self.bidirectional,
            relations=DISTANCES if self.bidirectional else LINE,
        )

    @override
    def card(self, dims: EncoderDims) -> Mapping[str, str]:
        formula = "-p ln(1 + a |distance|)" if self.kernel == "log" else "-a |distance| ** p"
        sides = (
            "symmetric: cannot tell left from right"
            if self.bidirectional
            else "causal: later keys are invisible"
        )
        return {
            "positions": f"{self.kernel} kernel {formula}, unlimited, {sides}",
            "parameters": f"p and a of each of {dims.num_heads} heads, one pair for all layers",
        }


@final
@mechanisms.register("kerple")
class Kerple(Mechanism[KerpleConfig]):
    """A penalty on distance whose shape each head learns, the same in all layers."""

    Config = KerpleConfig

    def __init__(self, config: KerpleConfig, dims: EncoderDims) -> None:
        """Build what p and a are computed from."""
        super().__init__(config, dims)
        first_p, first_a = map(torch.tensor, config.first_values(dims.num_heads))
        self.log_a = nn.Parameter(first_a.log())
        if config.kernel == "log":
            self.log_p = nn.Parameter(first_p.log())
        else:
            self.logit_p = nn.Parameter((first_p / 2.0).logit())

    def values(self) -> Kernel:
        """Return p and a of each head, in float32 or better."""
        exact = torch.promote_types(self.log_a.dtype, torch.float32)
        a = self.log_a.to(exact).exp()
        if self.config.kernel == "log":
            return Kernel(self.log_p.to(exact).exp(), a)
        return Kernel(2.0 * self.logit_p.to(exact).sigmoid(), a)

    @override
    def prepare(self, geometry: Geometry) -> DistanceBias:
        p, a = self.values()

        def log_kernel(distance: Tensor, head: Tensor) -> Tensor:
            return -p[head] * torch.log1p(a[head] * distance.abs())

        def power_kernel(distance: Tensor, head: Tensor) -> Tensor:
            return -a[head] * distance.abs().to(a.dtype).pow(p[head])

        kernel = log_kernel if self.config.kernel == "log" else power_kernel
        return DistanceBias("distance", geometry.relation, self.dims.num_heads, kernel, shared=True)

    @override
    def bias(self, site: Site) -> DistanceBias:
        prepared: DistanceBias = site.prepared
        return prepared

    @override
    def visibility(self, geometry: Geometry) -> tuple[VisibilityRule, ...]:
        return () if self.config.bidirectional else (Causal(geometry.distance),)
