"""Turning pairs of channels by angles whose cosines and sines are given."""

from typing import Literal, TypeAlias

import torch
from torch import Tensor

from posattn.shapes import PerHead

PairLayout: TypeAlias = Literal["half", "interleaved"]


def turned_pairs(states: PerHead, cosine: Tensor, sine: Tensor, layout: PairLayout) -> PerHead:
    """Return the states with their first channels turned in pairs, and the others as they are.

    Cosines and sines are [batch or 1, 1, length, pairs]. `half`: pair t is channels t and t + pairs;
    `interleaved`: channels 2 t and 2 t + 1.
    """
    rotated = 2 * cosine.shape[-1]
    cosine, sine = cosine.to(states.dtype), sine.to(states.dtype)
    turning, still = states[..., :rotated], states[..., rotated:]
    if layout == "half":
        first, second = turning.chunk(2, dim=-1)
    else:
        first, second = turning[..., 0::2], turning[..., 1::2]
    turned = (first * cosine - second * sine, second * cosine + first * sine)
    if layout == "half":
        return torch.cat([*turned, still], dim=-1)
    return torch.cat([torch.stack(turned, dim=-1).flatten(-2), still], dim=-1)
