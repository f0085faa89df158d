"""`position`: loss by position in the sequence, at the training length."""

from typing import Annotated, Any, ClassVar, Literal, final

import numpy as np
from pydantic import Field
from typing_extensions import override

from posattn.comparison.evaluations.base import EvaluationConfig, RunEvaluation, evaluations
from posattn.comparison.evaluations.subject import Subject


class PositionConfig(EvaluationConfig):
    """How many bins of positions, and how much of the validation split (null: all)."""

    name: Literal["position"] = "position"
    bins: Annotated[int, Field(ge=1)] = 8
    tokens: Annotated[int, Field(ge=1)] | None = None


@final
@evaluations.register("position")
class PositionEvaluation(RunEvaluation):
    """Bin i holds positions edges[i] to edges[i + 1] - 1; a bin without targets is null."""

    Config: ClassVar[type[EvaluationConfig]] = PositionConfig
    config: PositionConfig

    @override
    def evaluate(self, subject: Subject) -> dict[str, Any]:
        scores = subject.scores(subject.length, self.config.tokens)
        edges = bin_edges(subject.length, self.config.bins)
        missing = (0, subject.length - len(scores.position_targets))
        loss = np.add.reduceat(np.pad(scores.position_loss_sum, missing), edges[:-1])
        targets = np.add.reduceat(np.pad(scores.position_targets, missing), edges[:-1])
        return {
            "length": subject.length,
            "edges": edges,
            "loss": [
                s / n if n else None for s, n in zip(loss.tolist(), targets.tolist(), strict=True)
            ],
            "targets": targets.tolist(),
        }


def bin_edges(length: int, bins: int) -> list[int]:
    """Return the edges of at most `bins` bins over positions 0 to `length` - 1, about equally wide."""
    bins = min(bins, length)
    return [round(index * length / bins) for index in range(bins + 1)]
