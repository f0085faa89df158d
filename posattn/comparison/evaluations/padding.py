"""`padding`: padding on either side, and other rows in the batch, which must change nothing.

It asks the model as it was trained, with its own backend, so that a backend which lets padding through
is found as well.
"""

from typing import Annotated, ClassVar, Literal, final

import torch
from jaxtyping import Float
from pydantic import Field
from torch import Tensor
from typing_extensions import override

from posattn.comparison.evaluations.base import EvaluationConfig, evaluations
from posattn.comparison.evaluations.changes import Check, compare
from posattn.comparison.evaluations.probed import Precision, Probed, ProbedConfig
from posattn.comparison.evaluations.promised import PromisedEvaluation
from posattn.comparison.evaluations.promises import Promise
from posattn.recipe.schema import Recipe

NOTHING = Promise(True, "padding is invisible, and rows do not see each other")


class PaddingConfig(ProbedConfig):
    """How much padding; `tolerance` is a share of the largest logit."""

    name: Literal["padding"] = "padding"
    dtype: Precision = "float32"  # float32: as it was trained; float64: by the eager backend
    extra: Annotated[int, Field(ge=1)] = 16
    tolerance: Annotated[float, Field(gt=0)] = 1e-5


@final
@evaluations.register("padding")
class PaddingEvaluation(PromisedEvaluation):
    """Logits of padded text, and of text beside shorter text, against those of the text alone."""

    Config: ClassVar[type[EvaluationConfig]] = PaddingConfig
    config: PaddingConfig

    @override
    def room(self) -> int:
        return self.config.extra

    @override
    def checks(self, asked: Probed, recipe: Recipe) -> list[Check]:
        usual = torch.cat([asked.logits(row[None]) for row in asked.ids])
        extra, tolerance = self.config.extra, self.config.tolerance
        return [
            compare("right", usual, _padded(asked, 0, extra), NOTHING, tolerance, extra),
            compare("left", usual, _padded(asked, extra, 0), NOTHING, tolerance, extra),
            compare("batch", usual[:1], _beside_shorter(asked), NOTHING, tolerance),
        ]


def _padded(asked: Probed, before: int, behind: int) -> Float[Tensor, "rows length vocab"]:
    """Return the logits of the text with so much padding before and behind it."""
    pad = torch.nn.functional.pad
    ids = pad(asked.ids, (before, behind), value=asked.padding)
    visible = pad(torch.ones_like(asked.ids, dtype=torch.bool), (before, behind), value=False)
    return asked.logits(ids, visible)[:, before : before + asked.length]


def _beside_shorter(asked: Probed) -> Float[Tensor, "1 length vocab"]:
    """Return the logits of the first row in a batch whose other rows get shorter and shorter."""
    rows = max(len(asked.ids), 2)
    ids = asked.ids[torch.arange(rows) % len(asked.ids)].clone()
    shorter = torch.arange(rows) * max(1, asked.length // (2 * rows))
    lengths = (asked.length - shorter).clamp(min=1)
    visible = torch.arange(asked.length)[None] < lengths[:, None]
    return asked.logits(ids.masked_fill(~visible, asked.padding), visible)[:1]
