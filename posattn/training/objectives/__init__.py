"""The objectives: masked language modelling, and the exercises with one right answer."""

from posattn.training.objectives.base import (
    AnyObjectiveConfig,
    Objective,
    ObjectiveConfig,
    objectives,
)
from posattn.training.objectives.mlm import MaskedLanguageModelling, MlmConfig

import posattn.training.exercises as exercises  # isort: skip  # they register themselves

__all__ = [
    "AnyObjectiveConfig",
    "MaskedLanguageModelling",
    "MlmConfig",
    "Objective",
    "ObjectiveConfig",
    "exercises",
    "objectives",
]
