"""Frequencies of rotary angles stretched to longer texts: PI, NTK-aware, dynamic NTK, YaRN.

All in float64. `width` is the number of rotated channels, `factor` how many times longer a text may be.
"""

import math

import torch
from jaxtyping import Float, Int
from torch import Tensor

from posattn.positions.frequencies import inverse_frequencies


def ntk_frequencies(width: int, base: float, factor: float) -> Float[Tensor, " pairs"]:
    """Return frequencies of the base times factor ** (width / (width - 2))."""
    return inverse_frequencies(width // 2, width, base * factor ** (width / (width - 2)))


def dynamic_ntk_frequencies(
    width: int,
    base: float,
    factor: float,
    original_length: int,
    lengths: Int[Tensor, "#batch #tokens"],
) -> Float[Tensor, "#batch #tokens pairs"]:
    """Return NTK frequencies whose factor grows with each text's length, from 1 at the original one."""
    longest = lengths.double().clamp(min=original_length)
    growth = factor * longest / original_length - (factor - 1.0)
    bases = base * growth ** (width / (width - 2))
    index = torch.arange(width // 2, dtype=torch.float64, device=lengths.device)
    return bases[..., None] ** (-2.0 * index / width)


def yarn_range(
    width: int, base: float, original_length: int, betas: tuple[float, float], truncate: bool
) -> tuple[float, float]:
    """Return the pair up to which frequencies are kept and the pair from which they are divided.

    `betas` are rotations over the original length, fast then slow; the fast one bounds the low pair.
    """
    low, high = (
        width * math.log(original_length / (beta * 2 * math.pi)) / (2 * math.log(base))
        for beta in betas
    )
    if truncate:
        low, high = math.floor(low), math.ceil(high)
    return max(float(low), 0.0), min(float(high), width - 1.0)


def yarn_frequencies(
    width: int, base: float, factor: float, kept_to: float, divided_from: float
) -> Float[Tensor, " pairs"]:
    """Return each frequency as it is, divided by the factor, or between the two along a ramp."""
    frequency = inverse_frequencies(width // 2, width, base)
    if kept_to == divided_from:
        divided_from += 0.001  # as both released implementations avoid a division by zero
    index = torch.arange(width // 2, dtype=torch.float64)
    share = ((index - kept_to) / (divided_from - kept_to)).clamp(0.0, 1.0)
    return frequency / factor * share + frequency * (1.0 - share)
