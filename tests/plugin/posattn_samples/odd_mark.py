"""A learned vector added to the tokens at odd positions: a signal for decoders to inject."""

from typing import Literal, final

from torch import Tensor, nn

from posattn.mechanisms import EncoderDims, Mechanism, MechanismConfig, Traits
from posattn.shapes import Hidden


class OddMarkConfig(MechanismConfig):
    """The mark has no options."""

    name: Literal["odd_mark"] = "odd_mark"

    def traits(self) -> Traits:
        return Traits(adds_to_input=True, translation_invariant=False)


@final
class OddMark(Mechanism[OddMarkConfig]):
    """One learned vector."""

    Config = OddMarkConfig

    def __init__(self, config: OddMarkConfig, dims: EncoderDims) -> None:
        super().__init__(config, dims)
        self.mark = nn.Embedding(1, dims.hidden_size)

    def embed(self, hidden: Hidden, positions: Tensor) -> Hidden:
        is_odd = (positions.clamp(min=0) % 2).to(hidden.dtype)
        return hidden + is_odd[..., None] * self.mark.weight
