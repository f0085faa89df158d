"""What a batch asks of the model: objectives, by name."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar, TypeAlias

import numpy as np
from numpy.typing import NDArray

from posattn.admission import class_check
from posattn.config import NamedConfig, open_field
from posattn.registry import Registry
from posattn.training.text.draws import Counters, Keys
from posattn.training.text.vocabulary import Vocabulary

Ids = NDArray[np.int64]


class ObjectiveConfig(NamedConfig, ABC):
    """The options of an objective; each has its own."""

    @abstractmethod
    def target_fraction(self) -> float:
        """Return the part of the tokens that get a target, as expected."""

    def targets_in(self, length: int) -> float:
        """Return how many tokens of a row get a target, as expected."""
        return length * self.target_fraction()

    @abstractmethod
    def card(self) -> Mapping[str, str]:
        """Return the lines of the architecture card."""


class Objective(ABC):
    """Turns rows of tokens into inputs and targets; it pickles, for worker processes."""

    Config: ClassVar[type[ObjectiveConfig]]

    def __init__(self, config: Any, vocabulary: Vocabulary) -> None:
        """Take the options, and the ids of the tokenizer (not the rows of the embedding)."""
        self.config = config
        self.vocabulary = vocabulary

    @abstractmethod
    def apply(
        self, ids: Ids, visible: NDArray[np.bool_], keys: Keys, counters: Counters
    ) -> tuple[Ids, Ids]:
        """Return (ids, targets); a random choice depends on a row's key and a token's counter only."""

    def positions(
        self, ids: Ids, visible: NDArray[np.bool_], keys: Keys, counters: Counters
    ) -> Ids | None:
        """Return the position that each token is given, or None: tokens are counted from 0.

        It is asked with what `apply` is asked with, before anything is masked.
        """
        return None


objectives: Registry[type[Objective]] = Registry(
    "objective", "posattn.objectives", class_check(Objective, config=ObjectiveConfig)
)

if TYPE_CHECKING:
    AnyObjectiveConfig: TypeAlias = ObjectiveConfig
else:
    AnyObjectiveConfig = open_field(objectives, ObjectiveConfig)
