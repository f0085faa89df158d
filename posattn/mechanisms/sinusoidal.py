"""Fixed sinusoids, added to the token embeddings (Vaswani et al. 2017, arXiv:1706.03762, section 3.5).

    x_i = token_i + scale * S[p_i],   w_t = base ** (-2 t / hidden_size)
    interleaved:   S[p, 2 t] = sin(p w_t),  S[p, 2 t + 1] = cos(p w_t)
    concatenated:  S[p] = [sin(p w_0), .. , cos(p w_0), ..]   (Transformer-XL, RoFormer, DeepMind)

The two orders are a permutation of columns; they matter when weights are loaded. Vaswani et al. also
multiply token embeddings by sqrt(hidden_size): that is the encoder's `embedding_scale`. At
initialisation, tokens of standard deviation 0.02 against unit sinusoids are 1 to 35, so `scale` is
part of the experiment. `learned_scale` makes it one trained number (Hua et al. 2022 and Geiping and
Goldstein 2022 start it at hidden_size ** -0.5).

On a grid (`encoder.relation`) the first half of the channels are the sinusoids of the row and the second
those of the column, each hidden_size / 2 wide (MAE, He et al. 2021, arXiv:2111.06377, with `order:
concatenated` and `encoder.relation.first: column`). Tokens in no cell get zeros, as its [CLS] does.
"""

from collections.abc import Mapping
from typing import Literal, final

import torch
from jaxtyping import Int
from pydantic import PositiveFloat
from torch import Tensor, nn
from typing_extensions import override

from posattn.mechanisms.base import EncoderDims, Mechanism, MechanismConfig, Traits, mechanisms
from posattn.positions import Order, sinusoids
from posattn.shapes import Hidden


class SinusoidalConfig(MechanismConfig):
    """Options of fixed sinusoids."""

    name: Literal["sinusoidal"] = "sinusoidal"
    base: PositiveFloat = 10000.0  # longest wavelength over 2 pi
    order: Order = "interleaved"  # of sine and cosine columns
    scale: PositiveFloat = 1.0  # amplitude; with learned_scale, its first value
    learned_scale: bool = False

    @override
    def traits(self) -> Traits:
        return Traits(adds_to_input=True, translation_invariant=False, relations=("line", "grid"))

    @override
    def problems(self, dims: EncoderDims) -> list[str]:
        axes = dims.relation.num_axes
        if dims.hidden_size % axes == 0:
            return []
        return [
            f"sinusoids of {axes} axes share hidden_size {dims.hidden_size} evenly; make it even"
        ]

    @override
    def card(self, dims: EncoderDims) -> Mapping[str, str]:
        kind = "learned from" if self.learned_scale else "fixed at"
        return {
            "positions": f"sinusoids, {self.order}, base {self.base:g}, unlimited"
            + (", half of the channels for each axis" if dims.relation.num_axes > 1 else ""),
            "amplitude": f"{kind} {self.scale:g}",
        }


@final
@mechanisms.register("sinusoidal")
class SinusoidalPositions(Mechanism[SinusoidalConfig]):
    """Sines and cosines of each position, added to the token embeddings."""

    Config = SinusoidalConfig

    def __init__(self, config: SinusoidalConfig, dims: EncoderDims) -> None:
        """Build the amplitude, if it is learned."""
        super().__init__(config, dims)
        if config.learned_scale:
            self.scale = nn.Parameter(torch.tensor(config.scale))

    @override
    def embed(self, hidden: Hidden, positions: Int[Tensor, "#batch length"]) -> Hidden:
        places, config = self.dims.relation.places(positions.clamp(min=0)), self.config
        along = places.coordinates.unbind(-1)
        width = self.dims.hidden_size // len(along)
        parts = [sinusoids(at, width, config.base, config.order) for at in along]
        table = places.kept(torch.cat(parts, dim=-1))
        scale = self.scale if config.learned_scale else config.scale
        return hidden + (scale * table).to(hidden.dtype)
