"""`AttentionBias`: what a mechanism adds to the scaled logits, as a value between mechanisms and backends."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import TypeAlias

from torch import Tensor

from posattn.shapes import Logits

ScoreMod: TypeAlias = Callable[[Tensor, Tensor, Tensor, Tensor, Tensor], Tensor]
"""(score, batch, head, query index, key index) -> score with the bias added, as FlexAttention has it."""


class AttentionBias(ABC):
    """A term added to the scaled logits, before what is invisible is left out and the softmax taken."""

    @abstractmethod
    def materialize(self) -> Logits:
        """Return the whole bias; slow, and by definition right. Size-1 axes broadcast."""

    @abstractmethod
    def score_mod(self) -> ScoreMod:
        """Return the same bias one logit at a time."""

    def parts(self) -> "tuple[AttentionBias, ...]":
        """Return the simple biases that this is the sum of: dense, or looked up by bucket."""
        return (self,)

    def learns(self) -> bool:
        """Return whether a gradient may be wanted of a tensor that this bias is made of."""
        return True

    def factored(self) -> "tuple[AttentionBias, ...]":
        """Return the same biases, with products of tokens and a table left to the backend."""
        return self.parts()

    @abstractmethod
    def terms(self) -> Mapping[str, Logits]:
        """Return the named terms whose sum is `materialize()`."""
