"""No position at all: the control arm.

    logits[i, j] = q_i . k_j / sqrt(head_dim)

In an encoder without a causal mask this is permutation-equivariant: it sees a bag of tokens. (The
success of "NoPE" in decoders rests on the causal mask, which an encoder has not.)
"""

from typing import Literal, final

from typing_extensions import override

from posattn.mechanisms.base import ANY_RELATION, Mechanism, MechanismConfig, Traits, mechanisms


class NoPositionConfig(MechanismConfig):
    """`none` has no options."""

    name: Literal["none"] = "none"

    @override
    def traits(self) -> Traits:
        return Traits(relations=ANY_RELATION, knows_direction=False, knows_position=False)


@final
@mechanisms.register("none")
class NoPosition(Mechanism[NoPositionConfig]):
    """Adds nothing anywhere."""

    Config = NoPositionConfig
