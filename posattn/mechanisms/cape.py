"""Continuous augmented positional embeddings, CAPE (Likhomanenko et al. 2021, arXiv:2106.03143).

    x_i = token_i + S[q_i],   S the sinusoids of Vaswani et al. at real-valued positions
    evaluation:  q_i = s p_i - c
    training:    q_i = (s p_i - c + D + d_i) * L,   D ~ U(-global_shift, global_shift) of each text,
                 d_i ~ s U(-local_shift, local_shift) of each token,
                 ln L ~ U(-ln max_scale, ln max_scale) of each text
    s = position_scale,   c = mean of the text's s p_i if `centred`, else 0
    frequencies are frequency_scale * base ** (-2 t / hidden_size)

Defaults are the authors' setting for text (README of gcambara/cape): shifts 5 and 0.5, scale 1.03,
not centred. With local_shift up to 0.5 tokens keep their order; earlier versions of the code meant half of
it to each side. The code multiplies token embeddings by
sqrt(hidden_size), as Vaswani et al. do: that is the encoder's `embedding_scale`. It draws D and L for each
row of the batch; here each text of a packed row has its own. Its mean over a padded row counts one
padding place (x_lengths is compared with > in place of >=); here padding never counts. `order`
concatenated and a `base` other than 10000 are not in the code.
All draws come from one seed per forward (see `Places.seed_tensor`).
"""

import math
from collections.abc import Mapping
from typing import Annotated, Literal, final

import torch
from jaxtyping import Bool, Float, Int, Num
from pydantic import Field, NonNegativeFloat, PositiveFloat
from torch import Tensor
from typing_extensions import override

from posattn.mechanisms.base import (
    EncoderDims,
    Mechanism,
    MechanismConfig,
    Places,
    Traits,
    mechanisms,
)
from posattn.mechanisms.chance import uniform
from posattn.positions import Order, sinusoids
from posattn.shapes import Hidden


class CAPEConfig(MechanismConfig):
    """Options of CAPE; shifts are in positions."""

    name: Literal["cape"] = "cape"
    global_shift: NonNegativeFloat = 5.0  # largest, of all tokens of a text together
    local_shift: NonNegativeFloat = 0.5  # largest, of each token by itself
    max_scale: Annotated[float, Field(ge=1)] = 1.03  # largest factor on positions of a text
    centred: bool = False  # the mean position of each text is 0
    position_scale: PositiveFloat = 1.0
    frequency_scale: PositiveFloat = 1.0
    base: PositiveFloat = 10000.0
    order: Order = "interleaved"

    @override
    def traits(self) -> Traits:
        return Traits(adds_to_input=True, places=True, translation_invariant=self.centred)

    @override
    def problems(self, dims: EncoderDims) -> list[str]:
        if self.global_shift > 0 or self.local_shift > 0 or self.max_scale > 1:
            return []
        return ["cape without shifts and with max_scale 1 augments nothing; use sinusoidal"]

    @override
    def card(self, dims: EncoderDims) -> Mapping[str, str]:
        centred = ", centred on each text" if self.centred else ""
        return {
            "positions": f"sinusoids, {self.order}, base {self.base:g}, unlimited{centred}",
            "scales": f"positions x {self.position_scale:g}, frequencies x {self.frequency_scale:g}",
            "in training": f"texts shifted by up to {self.global_shift:g} and scaled by up to "
            f"{self.max_scale:g}, tokens shifted by up to {self.local_shift:g}",
        }


@final
@mechanisms.register("cape")
class CAPE(Mechanism[CAPEConfig]):
    """Sines and cosines of positions that training shifts and scales."""

    Config = CAPEConfig

    @override
    def place(self, places: Places) -> Float[Tensor, "#batch length"]:
        config = self.config
        positions = places.positions.double() * config.position_scale
        if config.centred:
            positions = positions - self._mean(places) * config.position_scale
        if not places.training:
            return positions
        rows = places.rows if positions.shape[0] == 1 else positions.shape[0]
        positions = positions.expand(rows, -1)
        draws = uniform(places.seed_tensor, 3, *positions.shape).to(positions.device)
        share_of_text, share_of_scale, share_of_token = 2 * draws - 1
        first = self._first_tokens(places).expand_as(positions)
        shift = (share_of_text * config.global_shift).gather(1, first)
        scale = (share_of_scale * math.log(config.max_scale)).gather(1, first).exp()
        local = share_of_token * (config.position_scale * config.local_shift)
        return (positions + shift + local) * scale

    @override
    def embed(self, hidden: Hidden, positions: Num[Tensor, "#batch length"]) -> Hidden:
        config = self.config
        at = positions.double() * config.frequency_scale
        table = sinusoids(at, self.dims.hidden_size, config.base, config.order)
        return hidden + table.to(hidden.dtype)

    def _mean(self, places: Places) -> Float[Tensor, "#batch #length"]:
        """Return the mean position of each token's text."""
        positions = places.positions
        weight = (positions >= 0)[:, None, :]
        if places.documents is not None:
            weight = weight & self._same_text(places.documents)
        count = weight.sum(-1).clamp(min=1)
        return (weight * positions[:, None, :]).sum(-1).double() / count

    def _first_tokens(self, places: Places) -> Int[Tensor, "#batch length"]:
        """Return the index of the first token of each token's text."""
        if places.documents is None:
            return torch.zeros_like(places.positions)
        return self._same_text(places.documents).int().argmax(-1)

    @staticmethod
    def _same_text(
        documents: Int[Tensor, "batch length"],
    ) -> Bool[Tensor, "batch length length"]:
        return documents[:, :, None] == documents[:, None, :]
