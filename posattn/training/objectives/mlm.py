"""`mlm`: masked language modelling."""

from collections.abc import Mapping
from math import isclose
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, model_validator

from posattn.errors import DataError
from posattn.training.masking import Shares, mask_tokens
from posattn.training.objectives.base import Ids, Objective, ObjectiveConfig, objectives
from posattn.training.text.draws import Counters, Keys
from posattn.training.text.vocabulary import Vocabulary


class MlmConfig(ObjectiveConfig):
    """Options of `mlm`."""

    name: Literal["mlm"] = "mlm"
    probability: float = Field(default=0.15, ge=0, le=1)
    """The part of the ordinary tokens that is selected; each is selected for itself."""
    mask: float = Field(default=0.8, ge=0, le=1)
    """The part of the selected tokens that the model sees as [MASK]."""
    random: float = Field(default=0.1, ge=0, le=1)
    """The part of the selected tokens that the model sees as a random token."""
    keep: float = Field(default=0.1, ge=0, le=1)
    """The part of the selected tokens that the model sees as they are."""

    @model_validator(mode="after")
    def _shares_are_whole(self) -> "MlmConfig":
        total = self.mask + self.random + self.keep
        if not isclose(total, 1.0, abs_tol=1e-9):
            raise ValueError(
                "mask + random + keep must be 1, got "
                f"{self.mask} + {self.random} + {self.keep} = {total:g}"
            )
        return self

    def target_fraction(self) -> float:
        """Return `probability`."""
        return self.probability

    def card(self) -> Mapping[str, str]:
        """Return what is selected, and what becomes of it."""
        return {
            "objective": "masked language modelling, loss on the selected tokens only",
            "selected": f"{self.probability:.0%} of the tokens, never special ones or padding",
            "shown as": f"[MASK] {self.mask:.0%}, random {self.random:.0%}, itself {self.keep:.0%}",
        }


@objectives.register("mlm")
class MaskedLanguageModelling(Objective):
    """Restore masked tokens (BERT, Devlin et al. 2018): 15 % selected, of these 80/10/10."""

    Config = MlmConfig
    config: MlmConfig

    def __init__(self, config: MlmConfig, vocabulary: Vocabulary) -> None:
        """Take the options; DataError if the tokenizer has nothing but special tokens."""
        super().__init__(config, vocabulary)
        if not len(vocabulary.ordinary):
            raise DataError("the tokenizer has no ordinary token, so there is nothing to mask")
        self._shares = Shares(config.mask, config.random, config.keep)

    def apply(
        self, ids: Ids, visible: NDArray[np.bool_], keys: Keys, counters: Counters
    ) -> tuple[Ids, Ids]:
        """Return the tokens with some of them masked, and what they were."""
        return mask_tokens(
            ids, visible, keys, counters, self.vocabulary, self.config.probability, self._shares
        )
