"""xPos: rotary positions with an exponential decay (Sun et al. 2022, arXiv:2212.10554).

    q'_i = R(p_i) q_i * z ** (p_i / scale_base),   k'_j = R(p_j) k_j * z ** (-p_j / scale_base)
    q'_i . k'_j = sum over pairs t of z_t ** ((p_i - p_j) / scale_base) * (rotated product of pair t)
    z_t = (2 t / head_dim + gamma) / (1 + gamma),   R as in rope, t = 0 .. head_dim / 2 - 1

The factor depends on p_i - p_j: it decays for keys to the left of the query and grows without limit for
keys to its right, so xPos has no meaning where both are visible. It is refused unless `causal: true`,
which hides later keys; nobody has published a form for both directions, and none is made up here.

The released codes (torchscale; x-transformers) centre positions on half the length before they scale,
which cancels in every product and keeps both factors near 1; here positions are centred on half of each
text's length. gamma is 0.4 and scale_base 512 in both. Both codes pair channels (2 t, 2 t + 1), the default.
"""

from collections.abc import Mapping
from typing import Literal, NamedTuple, final

import torch
from jaxtyping import Int, Num
from pydantic import PositiveFloat
from torch import Tensor
from typing_extensions import override

from posattn.bias import Causal, VisibilityRule
from posattn.mechanisms.base import (
    EncoderDims,
    Geometry,
    Heads,
    Mechanism,
    MechanismConfig,
    Traits,
    mechanisms,
)
from posattn.positions import PairLayout, angles, inverse_frequencies, turned_pairs


class XPosConfig(MechanismConfig):
    """Options of xPos."""

    name: Literal["xpos"] = "xpos"
    causal: bool = False  # must be set: xPos is not defined where later keys are visible
    base: PositiveFloat = 10000.0
    scale_base: PositiveFloat = 512.0  # distance over which pair t decays by its factor z_t
    gamma: PositiveFloat = 0.4  # the larger, the slower the decay
    layout: PairLayout = "interleaved"

    @override
    def traits(self) -> Traits:
        return Traits(rotates=True, causal=self.causal, reads_query=True, reads_key=True)

    @override
    def problems(self, dims: EncoderDims) -> list[str]:
        problems = []
        if not self.causal:
            problems.append(
                "xpos is defined for causal attention only: its factor decays for keys to the left of "
                "a query and grows without limit for keys to its right; set causal: true, which hides "
                "later keys, or use rope"
            )
        if dims.head_dim % 2:
            problems.append(f"xpos turns pairs of channels, but head_dim {dims.head_dim} is odd")
        return problems

    @override
    def card(self, dims: EncoderDims) -> Mapping[str, str]:
        slowest = 1.0 - 2.0 / (dims.head_dim * (1.0 + self.gamma))
        return {
            "positions": f"rotation of query and key, base {self.base:g}, {self.layout}, unlimited",
            "decay": f"per {self.scale_base:g} positions, from x {self.gamma / (1 + self.gamma):.4g} in "
            f"the fastest pair to x {slowest:.4g} in the slowest",
        }


class DecayingTurn(NamedTuple):
    """Cosines and sines times decay, for queries and for keys, [batch or 1, 1, length, pairs]."""

    query_cosine: Tensor
    query_sine: Tensor
    key_cosine: Tensor
    key_sine: Tensor


@final
@mechanisms.register("xpos")
class XPos(Mechanism[XPosConfig]):
    """Turns pairs of query and key channels, and lets their product decay with distance."""

    Config = XPosConfig

    @override
    def prepare(self, geometry: Geometry) -> DecayingTurn:
        query_angle, query_decay = self._turn(geometry.query_positions, geometry.query_lengths)
        key_angle, key_decay = self._turn(geometry.key_positions, geometry.key_lengths)
        return DecayingTurn(
            query_angle.cos() * query_decay,
            query_angle.sin() * query_decay,
            key_angle.cos() / key_decay,
            key_angle.sin() / key_decay,
        )

    @override
    def rotate(self, heads: Heads, prepared: DecayingTurn) -> Heads:
        layout = self.config.layout
        query = turned_pairs(heads.query, prepared.query_cosine, prepared.query_sine, layout)
        key = turned_pairs(heads.key, prepared.key_cosine, prepared.key_sine, layout)
        return Heads(query, key, heads.value)

    @override
    def resting(self, prepared: DecayingTurn) -> DecayingTurn:
        query, key = torch.ones_like(prepared.query_cosine), torch.ones_like(prepared.key_cosine)
        return DecayingTurn(query, torch.zeros_like(query), key, torch.zeros_like(key))

    @override
    def visibility(self, geometry: Geometry) -> tuple[VisibilityRule, ...]:
        return (Causal(geometry.distance),)

    def _turn(
        self, positions: Num[Tensor, "#batch length"], lengths: Int[Tensor, "#batch #length"]
    ) -> tuple[Tensor, Tensor]:
        """Return the angle and the decay of every pair at every position, in float64."""
        width, config = self.dims.head_dim, self.config
        frequency = inverse_frequencies(width // 2, width, config.base)
        share = torch.arange(0, width, 2, dtype=torch.float64, device=positions.device) / width
        power = (positions - lengths // 2).double() / config.scale_base
        decay = ((share + config.gamma) / (1.0 + config.gamma)) ** power[..., None]
        return angles(positions, frequency)[:, None], decay[:, None]
