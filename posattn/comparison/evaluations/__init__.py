"""Evaluations by name; the built-in ones register here."""

from posattn.comparison.evaluations.base import (
    Evaluation,
    EvaluationConfig,
    RunEvaluation,
    StudyEvaluation,
    evaluations,
)
from posattn.comparison.evaluations.length import LengthEvaluation
from posattn.comparison.evaluations.position import PositionEvaluation
from posattn.comparison.evaluations.size import SizeEvaluation
from posattn.comparison.evaluations.speed import SpeedEvaluation
from posattn.comparison.evaluations.validation import ValidationEvaluation

registry = evaluations

__all__ = [
    "Evaluation",
    "EvaluationConfig",
    "LengthEvaluation",
    "PositionEvaluation",
    "RunEvaluation",
    "SizeEvaluation",
    "SpeedEvaluation",
    "StudyEvaluation",
    "ValidationEvaluation",
    "evaluations",
    "registry",
]
