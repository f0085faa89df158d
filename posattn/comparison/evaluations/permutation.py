"""`permutation`: shuffled and reversed text, which gets the same logits only where order is unknown.

A model that does not see order gives each token the same logits wherever it stands; a rotation or bias
that has no effect would do so too, and is found by this.
"""

from typing import Annotated, ClassVar, Literal, final

import torch
from jaxtyping import Int
from pydantic import Field
from torch import Tensor
from typing_extensions import override

from posattn.comparison.evaluations.base import EvaluationConfig, evaluations
from posattn.comparison.evaluations.changes import Check, compare
from posattn.comparison.evaluations.probed import Probed, ProbedConfig
from posattn.comparison.evaluations.promised import PromisedEvaluation
from posattn.comparison.evaluations.promises import of_permutation, of_reversal
from posattn.recipe.schema import Recipe
from posattn.training.text.draws import permutation


class PermutationConfig(ProbedConfig):
    """Which shuffle; `tolerance` is a share of the largest logit."""

    name: Literal["permutation"] = "permutation"
    seed: Annotated[int, Field(ge=0)] = 0
    tolerance: Annotated[float, Field(gt=0)] = 1e-6


@final
@evaluations.register("permutation")
class PermutationEvaluation(PromisedEvaluation):
    """Logits of the reordered text, put back in order, against those of the text."""

    Config: ClassVar[type[EvaluationConfig]] = PermutationConfig
    config: PermutationConfig

    @override
    def checks(self, asked: Probed, recipe: Recipe) -> list[Check]:
        usual = asked.logits(asked.ids)
        checks = []
        for name, order, promise in (
            ("shuffled", self._shuffle(asked.length), of_permutation),
            ("reversed", torch.arange(asked.length).flip(0), of_reversal),
        ):
            found = asked.logits(asked.ids[:, order])[:, order.argsort()]
            expected = promise(recipe.encoder, recipe.decoder)
            checks.append(compare(name, usual, found, expected, self.config.tolerance))
        return checks

    def _shuffle(self, length: int) -> Int[Tensor, " length"]:
        return torch.from_numpy(permutation(length, self.config.seed))
