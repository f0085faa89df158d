"""A learned bonus for keys an even distance away.

bonus_h if p_i - p_j is even, else 0
"""

from collections.abc import Mapping
from typing import Literal, final

import torch
from torch import Tensor, nn

from posattn.bias import AttentionBias, DenseBias
from posattn.mechanisms import EncoderDims, Geometry, Mechanism, MechanismConfig, Site, Traits


class EvenBonusConfig(MechanismConfig):
    """Options of the bonus."""

    name: Literal["even_bonus"] = "even_bonus"
    first_value: float = 1.0

    def traits(self) -> Traits:
        return Traits(adds_bias=True, knows_direction=False)

    def card(self, dims: EncoderDims) -> Mapping[str, str]:
        return {"positions": "a learned bonus per head at even distances"}


@final
class EvenBonus(Mechanism[EvenBonusConfig]):
    """One learned number per head."""

    Config = EvenBonusConfig

    def __init__(self, config: EvenBonusConfig, dims: EncoderDims) -> None:
        super().__init__(config, dims)
        self.bonus = nn.Parameter(torch.full((dims.num_heads,), config.first_value))

    def prepare(self, geometry: Geometry) -> Tensor:
        return geometry.distance.pairs.remainder(2) == 0

    def bias(self, site: Site) -> AttentionBias:
        return DenseBias("even", self.bonus[None, :, None, None] * site.prepared[:, None])
