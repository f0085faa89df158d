"""Polar positions, PoPE (Gopalakrishnan et al. 2025, arXiv:2509.10534).

    logits[h, i, j] = scale * sum over channels c of
                      softplus(q_ic) softplus(k_jc) cos((p_i - p_j) w_c - delta_hc)
    w_c = base ** (-c / head_dim),   c = 0 .. head_dim - 1

Each channel of a query or key is a complex number: content is its length, softplus of the projection, and
position is its angle, p_i w_c, to which keys add a trained phase delta_hc. In rotary positions content sets
angles too, of half as many pairs. As real vectors queries and keys have 2 head_dim channels, so their
product costs twice as much; values keep theirs, and scale is 1 / sqrt(head_dim) as ever.

x-transformers' PolarEmbedding is the code followed: phases for each head and channel, shared by all layers,
zero at first, held within -2 pi .. 0. A phase pushed beyond is clamped and then gets no gradient: from the
start value 0 half of the first steps lead there. `phase_bound: none` leaves phases free, which is the same
set of functions, since cosines repeat. With all phases 0 (`phase: none`, and `zeros` before training) only
|p_i - p_j| counts and order cannot be told. x-transformers can also start with phases drawn uniformly from
-2 pi .. 0; `phase: spread` spaces them evenly over that range instead, without chance.
"""

import math
from collections.abc import Mapping
from typing import Literal, NamedTuple, final

import torch
from pydantic import PositiveFloat
from torch import Tensor, nn
from torch.nn import functional
from typing_extensions import override

from posattn.mechanisms.base import (
    EncoderDims,
    Flops,
    Geometry,
    Heads,
    Mechanism,
    MechanismConfig,
    Traits,
    mechanisms,
)
from posattn.positions import angles, inverse_frequencies
from posattn.shapes import PerHead


class PoPEConfig(MechanismConfig):
    """Options of polar positions."""

    name: Literal["pope"] = "pope"
    base: PositiveFloat = 10000.0
    phase: Literal["zeros", "spread", "none"] = "zeros"  # first values of the trained phases
    phase_bound: Literal["clamp", "none"] = "clamp"  # to -2 pi .. 0

    @override
    def traits(self) -> Traits:
        return Traits(
            rotates=True,
            widens=True,
            knows_direction=self.phase != "none",
            reads_query=True,
            reads_key=True,
        )

    @override
    def card(self, dims: EncoderDims) -> Mapping[str, str]:
        phases = {
            "zeros": "trained for each head and channel, 0 at first",
            "spread": "trained for each head and channel, spread over a turn at first",
            "none": "none",
        }
        bound = ", clamped to -2 pi .. 0" if self.phase_bound == "clamp" else ""
        return {
            "positions": f"angle of each channel of query and key, base {self.base:g}, unlimited",
            "content": f"length of each channel, softplus; {2 * dims.head_dim} real channels per head",
            "phases": phases[self.phase] + (bound if self.phase != "none" else ""),
        }

    @override
    def flops(self, dims: EncoderDims, num_queries: int, num_keys: int) -> Flops:
        return Flops(per_sequence=2 * num_queries * num_keys * dims.hidden_size)


class PolarTurn(NamedTuple):
    """Cosines and sines of queries and keys, [batch or 1, 1, length, head_dim], and of the phases."""

    query_cosine: Tensor
    query_sine: Tensor
    key_cosine: Tensor
    key_sine: Tensor
    phases: Tensor | None  # [heads, 1, head_dim]


@final
@mechanisms.register("pope")
class PolarPositions(Mechanism[PoPEConfig]):
    """Makes each channel of queries and keys a complex number whose angle is position."""

    Config = PoPEConfig

    def __init__(self, config: PoPEConfig, dims: EncoderDims) -> None:
        """Build the phases, if there are any."""
        super().__init__(config, dims)
        shape = (dims.num_heads, 1, dims.head_dim)
        if config.phase == "zeros":
            self.phases = nn.Parameter(torch.zeros(shape))
        elif config.phase == "spread":
            # multiples of the golden ratio, modulo 1, are spread evenly however many there are
            index = torch.arange(1, math.prod(shape) + 1, dtype=torch.float64)
            share = (index * (math.sqrt(5) - 1) / 2) % 1.0
            self.phases = nn.Parameter((-2 * math.pi * share).float().view(shape))

    @override
    def prepare(self, geometry: Geometry) -> PolarTurn:
        width = self.dims.head_dim
        frequency = inverse_frequencies(width, 2 * width, self.config.base)  # one per channel
        query_angle = angles(geometry.query_positions, frequency)[:, None]
        key_angle = angles(geometry.key_positions, frequency)[:, None]
        phases: Tensor | None = None
        if self.config.phase != "none":
            phases = self.phases
            if self.config.phase_bound == "clamp":
                phases = phases.clamp(-2 * math.pi, 0.0)
        return PolarTurn(
            query_angle.cos(), query_angle.sin(), key_angle.cos(), key_angle.sin(), phases
        )

    @override
    def rotate(self, heads: Heads, prepared: PolarTurn) -> Heads:
        real, imaginary = _polar(heads.query, prepared.query_cosine, prepared.query_sine)
        query = torch.cat([real, imaginary], dim=-1)
        real, imaginary = _polar(heads.key, prepared.key_cosine, prepared.key_sine)
        if prepared.phases is not None:
            exact = prepared.phases.to(torch.promote_types(prepared.phases.dtype, torch.float32))
            cosine, sine = exact.cos().to(real.dtype), exact.sin().to(real.dtype)
            real, imaginary = real * cosine - imaginary * sine, imaginary * cosine + real * sine
        return Heads(query, torch.cat([real, imaginary], dim=-1), heads.value)

    @override
    def resting(self, prepared: PolarTurn) -> PolarTurn:
        query, key = torch.ones_like(prepared.query_cosine), torch.ones_like(prepared.key_cosine)
        turned = (query, torch.zeros_like(query), key, torch.zeros_like(key))
        return PolarTurn(*turned, prepared.phases)


def _polar(states: PerHead, cosine: Tensor, sine: Tensor) -> tuple[Tensor, Tensor]:
    length = functional.softplus(states)
    return length * cosine.to(states.dtype), length * sine.to(states.dtype)
