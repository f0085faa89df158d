"""Sinusoids and rotary angles, always computed in float64 and rounded once.

A half-precision product of position and frequency is noise from a few hundred positions on, so no
function here takes a dtype for the computation; the caller casts cosines and sines, never angles.
"""

from typing import Literal

import torch
from jaxtyping import Float, Num
from torch import Tensor

Order = Literal["interleaved", "concatenated"]


def inverse_frequencies(
    num_frequencies: int, width: int, base: float
) -> Float[Tensor, " frequencies"]:
    """Return base ** (-2 i / width) for i = 0 .. num_frequencies - 1, in float64."""
    index = torch.arange(num_frequencies, dtype=torch.float64)
    return torch.pow(torch.tensor(base, dtype=torch.float64), -2.0 * index / width)


def angles(
    positions: Num[Tensor, "*any"], inverse_frequency: Float[Tensor, "*#any frequencies"]
) -> Float[Tensor, "*any frequencies"]:
    """Return position times frequency in float64, on the device of the positions."""
    return positions.double()[..., None] * inverse_frequency.to(positions.device)


def sinusoids(
    positions: Num[Tensor, "*any"], width: int, base: float, order: Order
) -> Float[Tensor, "*any width"]:
    """Return sines and cosines of each position in float64.

    `interleaved` (Vaswani et al. 2017): column 2 i is sin(p w_i), column 2 i + 1 is cos(p w_i).
    `concatenated` (Transformer-XL): all sines, then all cosines. With an odd width there is one sine
    more than there are cosines. Frequencies are w_i = base ** (-2 i / width).
    """
    num_sines = (width + 1) // 2
    angle = angles(positions, inverse_frequencies(num_sines, width, base))
    sine, cosine = angle.sin(), angle.cos()[..., : width // 2]
    joined = torch.cat([sine, cosine], dim=-1)
    if order == "concatenated":
        return joined
    column = torch.empty(width, dtype=torch.long, device=positions.device)
    column[0::2] = torch.arange(num_sines, device=positions.device)
    column[1::2] = num_sines + torch.arange(width // 2, device=positions.device)
    return joined[..., column]
