"""`shift`: the same text at other places, which must change nothing unless positions are absolute.

`filler`: padding stands before and behind the text and positions count on through it, so that the text
moves while its neighbours stay invisible. `positions`: the text alone, with other positions given.
"""

from typing import Annotated, ClassVar, Literal, final

import torch
from jaxtyping import Float
from pydantic import Field, model_validator
from torch import Tensor
from typing_extensions import override

from posattn.comparison.evaluations.base import EvaluationConfig, evaluations
from posattn.comparison.evaluations.changes import Check, compare
from posattn.comparison.evaluations.probed import Probed, ProbedConfig
from posattn.comparison.evaluations.promised import PromisedEvaluation
from posattn.comparison.evaluations.promises import of_translation
from posattn.config import Many
from posattn.recipe.schema import Recipe


class ShiftConfig(ProbedConfig):
    """By how many places the text moves; `tolerance` is a share of the largest logit."""

    name: Literal["shift"] = "shift"
    offsets: Many[Annotated[int, Field(ge=1)]] = Field((1, 8, 32), min_length=1)
    tolerance: Annotated[float, Field(gt=0)] = 1e-6

    @model_validator(mode="after")
    def _ascending(self) -> "ShiftConfig":
        if list(self.offsets) != sorted(set(self.offsets)):
            raise ValueError(
                f"offsets must ascend, each once, not {list(self.offsets)}; "
                f"write {sorted(set(self.offsets))}"
            )
        return self


@final
@evaluations.register("shift")
class ShiftEvaluation(PromisedEvaluation):
    """Logits of the moved text against those of the text at its first place, by offset."""

    Config: ClassVar[type[EvaluationConfig]] = ShiftConfig
    config: ShiftConfig

    @override
    def room(self) -> int:
        return self.config.offsets[-1]

    @override
    def reason_against(self, recipe: Recipe) -> str | None:
        relation = recipe.encoder.relation.name
        return (
            None if relation == "line" else f"a text on the relation '{relation}' cannot be moved"
        )

    @override
    def checks(self, asked: Probed, recipe: Recipe) -> list[Check]:
        promise = of_translation(recipe.encoder, recipe.decoder)
        checks = []
        for name, move in (("filler", self._in_filler), ("positions", at_positions)):
            first = move(asked, 0)
            for offset in self.config.offsets:
                found, tolerance = move(asked, offset), self.config.tolerance
                # what sees absolute positions need not see a small step (FIRE below its threshold)
                judged = promise.same or offset == self.config.offsets[-1]
                check = compare(name, first, found, promise, tolerance, offset, judged=judged)
                checks.append(check)
        return checks

    def _in_filler(self, asked: Probed, offset: int) -> Float[Tensor, "rows length vocab"]:
        """Return the logits of the text, which starts at `offset` in a row of filler."""
        rows, length = asked.ids.shape
        width = length + self.config.offsets[-1]
        place = slice(offset, offset + length)
        ids = torch.full((rows, width), asked.padding)
        ids[:, place] = asked.ids
        visible = torch.zeros(rows, width, dtype=torch.bool)
        visible[:, place] = True
        return asked.logits(ids, visible, torch.arange(width)[None])[:, place]


def at_positions(asked: Probed, offset: int) -> Float[Tensor, "rows length vocab"]:
    """Return the logits of the text alone, whose first token is at position `offset`."""
    return asked.logits(asked.ids, positions=torch.arange(asked.length)[None] + offset)
