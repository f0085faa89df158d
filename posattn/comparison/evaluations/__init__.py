"""Evaluations by name; the built-in ones register here."""

from posattn.comparison.evaluations.attention_distance import AttentionDistanceEvaluation
from posattn.comparison.evaluations.base import (
    Evaluation,
    EvaluationConfig,
    RunEvaluation,
    StudyEvaluation,
    evaluations,
)
from posattn.comparison.evaluations.evidence_distance import EvidenceDistanceEvaluation
from posattn.comparison.evaluations.length import LengthEvaluation
from posattn.comparison.evaluations.padding import PaddingEvaluation
from posattn.comparison.evaluations.permutation import PermutationEvaluation
from posattn.comparison.evaluations.position import PositionEvaluation
from posattn.comparison.evaluations.recall_distance import RecallDistanceEvaluation
from posattn.comparison.evaluations.shift import ShiftEvaluation
from posattn.comparison.evaluations.size import SizeEvaluation
from posattn.comparison.evaluations.speed import SpeedEvaluation
from posattn.comparison.evaluations.validation import ValidationEvaluation

registry = evaluations

__all__ = [
    "AttentionDistanceEvaluation",
    "Evaluation",
    "EvaluationConfig",
    "EvidenceDistanceEvaluation",
    "LengthEvaluation",
    "PaddingEvaluation",
    "PermutationEvaluation",
    "PositionEvaluation",
    "RecallDistanceEvaluation",
    "RunEvaluation",
    "ShiftEvaluation",
    "SizeEvaluation",
    "SpeedEvaluation",
    "StudyEvaluation",
    "ValidationEvaluation",
    "evaluations",
    "registry",
]
