"""Rotary position embedding, RoPE (Su et al. 2021, arXiv:2104.09864, section 3.2).

    q'_i = R(p_i) q_i,  k'_j = R(p_j) k_j,   q'_i . k'_j depends on p_i - p_j only
    R(p) turns channel pair t by the angle p * base ** (-2 t / r), r = rotated channels per head

    interleaved: pair t is channels (2 t, 2 t + 1)    RoFormer, GPT-J, x-transformers
    half:        pair t is channels (t, t + r / 2)    GPT-NeoX, LLaMA, ModernBERT

The layouts are the same function up to a permutation of the query and key projections' rows; loaded
weights need the one that they were trained with. `fraction` below 1 leaves the last channels of each
head unrotated (GPT-NeoX: 0.25). `rotate_value` turns values too (an option of RoFormer in transformers;
not in the paper). Angles, sines and cosines are computed in float64 and rounded once.
"""

import math
from collections.abc import Mapping
from typing import Annotated, Literal, NamedTuple, final

import torch
from jaxtyping import Float, Int
from pydantic import Field, PositiveFloat
from torch import Tensor
from typing_extensions import override

from posattn.mechanisms.base import (
    EncoderDims,
    Geometry,
    Heads,
    Mechanism,
    MechanismConfig,
    Traits,
    mechanisms,
)
from posattn.positions import angles, inverse_frequencies
from posattn.shapes import PerHead


class RotaryConfig(MechanismConfig):
    """Options of rotary position embedding."""

    name: Literal["rope"] = "rope"
    base: PositiveFloat = 10000.0
    layout: Literal["half", "interleaved"] = "half"
    fraction: Annotated[float, Field(gt=0, le=1)] = 1.0  # of each head's channels that are rotated
    rotate_value: bool = False

    def rotated(self, dims: EncoderDims) -> int:
        """Return the number of rotated channels per head."""
        return math.floor(dims.head_dim * self.fraction + 1e-9)  # 100 x 0.58 is 57.999..

    @override
    def traits(self) -> Traits:
        return Traits(rotates=True, translation_invariant=not self.rotate_value)

    @override
    def problems(self, dims: EncoderDims) -> list[str]:
        rotated = self.rotated(dims)
        if rotated and rotated % 2 == 0:
            return []
        return [
            f"rope rotates pairs of channels, but fraction {self.fraction:g} of head_dim "
            f"{dims.head_dim} is {rotated}; choose an even, positive number of channels"
        ]

    @override
    def card(self, dims: EncoderDims) -> Mapping[str, str]:
        what = "query, key and value" if self.rotate_value else "query and key"
        return {
            "positions": f"rotation of {what}, base {self.base:g}, unlimited",
            "rotated channels": f"{self.rotated(dims)} of {dims.head_dim} per head, {self.layout}",
        }


class Turn(NamedTuple):
    """Cosines and sines for queries and for keys, [batch or 1, 1, length, rotated / 2], float64."""

    query_cosine: Tensor
    query_sine: Tensor
    key_cosine: Tensor
    key_sine: Tensor


@final
@mechanisms.register("rope")
class RotaryPositions(Mechanism[RotaryConfig]):
    """Turns pairs of query and key channels by an angle that grows with position."""

    Config = RotaryConfig

    @override
    def prepare(self, geometry: Geometry) -> Turn:
        query_angle = self._angles(geometry.query_positions)
        key_angle = self._angles(geometry.key_positions)
        return Turn(query_angle.cos(), query_angle.sin(), key_angle.cos(), key_angle.sin())

    @override
    def rotate(self, heads: Heads, prepared: Turn) -> Heads:
        query = self._turn(heads.query, prepared.query_cosine, prepared.query_sine)
        key = self._turn(heads.key, prepared.key_cosine, prepared.key_sine)
        if not self.config.rotate_value:
            return Heads(query, key, heads.value)
        return Heads(query, key, self._turn(heads.value, prepared.key_cosine, prepared.key_sine))

    def _angles(
        self, positions: Int[Tensor, "batch length"]
    ) -> Float[Tensor, "batch 1 length pairs"]:
        rotated = self.config.rotated(self.dims)
        frequency = inverse_frequencies(rotated // 2, rotated, self.config.base)
        return angles(positions, frequency)[:, None]

    def _turn(self, states: PerHead, cosine: Tensor, sine: Tensor) -> PerHead:
        rotated = self.config.rotated(self.dims)
        cosine, sine = cosine.to(states.dtype), sine.to(states.dtype)
        turning, still = states[..., :rotated], states[..., rotated:]
        if self.config.layout == "half":
            first, second = turning.chunk(2, dim=-1)
        else:
            first, second = turning[..., 0::2], turning[..., 1::2]
        turned = (first * cosine - second * sine, second * cosine + first * sine)
        if self.config.layout == "half":
            return torch.cat([*turned, still], dim=-1)
        return torch.cat([torch.stack(turned, dim=-1).flatten(-2), still], dim=-1)
