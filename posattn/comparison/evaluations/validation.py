"""`validation`: loss and accuracy on the validation split, and the sums of every sample."""

import io
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, final

import numpy as np
from pydantic import Field
from typing_extensions import override

from posattn.comparison.evaluations.base import EvaluationConfig, RunEvaluation, evaluations
from posattn.comparison.evaluations.subject import Subject
from posattn.training.durable import write_bytes
from posattn.training.evaluate import Evaluation as Scores

EXAMPLES = "examples.npz"


class ValidationConfig(EvaluationConfig):
    """How much of the split is read; null: all of it."""

    name: Literal["validation"] = "validation"
    tokens: Annotated[int, Field(ge=1)] | None = None


@final
@evaluations.register("validation")
class ValidationEvaluation(RunEvaluation):
    """Total loss over total targets, with masks that are the same in every run of a study."""

    Config: ClassVar[type[EvaluationConfig]] = ValidationConfig
    config: ValidationConfig

    @override
    def evaluate(self, subject: Subject) -> dict[str, Any]:
        scores = subject.scores(subject.length, self.config.tokens)
        save_examples(subject.folder / EXAMPLES, scores)
        return {
            "loss": scores.loss,
            "accuracy": scores.accuracy,
            "targets": scores.targets,
            "tokens": scores.tokens,
            "samples": len(scores.sample_ids),
        }


def save_examples(path: Path, scores: Scores) -> None:
    """Write the sums of each sample, for paired tests over samples."""
    content = io.BytesIO()
    np.savez_compressed(
        content,
        sample_ids=scores.sample_ids,
        loss_sum=scores.loss_sum,
        targets=scores.sample_targets,
        correct=scores.correct,
    )
    write_bytes(path, content.getvalue())
