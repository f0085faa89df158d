"""What every exercise is: a task on random symbols with one right answer at each place asked about."""

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from posattn.errors import DataError
from posattn.training.masking import IGNORE
from posattn.training.objectives.base import Ids, Objective, ObjectiveConfig
from posattn.training.text.draws import Counters, Keys, Purpose, fold, uniforms
from posattn.training.text.vocabulary import Vocabulary


class ExerciseConfig(ObjectiveConfig):
    """The options of an exercise."""

    def least_symbols(self, length: int) -> int:
        """Return how many symbols rows of this length need at least."""
        return 2

    def least_length(self) -> int:
        """Return how many symbols a row needs at least."""
        return 2

    def target_fraction(self) -> float:
        """Return 1: every place is asked about, unless `targets_in` says otherwise."""
        return 1.0

    def card(self) -> Mapping[str, str]:
        """Return the task in one line."""
        return {"objective": f"exercise '{self.name}': {self.statement()}"}

    @abstractmethod
    def statement(self) -> str:
        """Return what is asked, in a formula or a few words."""


@dataclass(frozen=True)
class Symbols:
    """Rows of symbols, numbered from 0, with the draws that belong to each row.

    Special tokens inside a text (a separator between documents) count as symbol 0.
    """

    values: Ids
    keys: Keys
    counters: Counters

    @property
    def length(self) -> int:
        """Return the symbols in a row."""
        return int(self.values.shape[1])

    def by_row(self, purpose: Purpose, count: int) -> NDArray[np.float64]:
        """Return `count` draws in [0, 1) for each row, at most as many as it has symbols."""
        return uniforms(self._stream(purpose), self.counters[:, :1] + np.arange(count))

    def by_place(self, purpose: Purpose) -> NDArray[np.float64]:
        """Return a draw in [0, 1) for each place."""
        return uniforms(self._stream(purpose), self.counters)

    def _stream(self, purpose: Purpose) -> Keys:
        return fold(int(purpose), self.keys.view(np.int64))[:, None]


@dataclass(frozen=True)
class Posed:
    """What the model sees and what it must answer: symbol numbers, or MASK, SEPARATOR and NOTHING."""

    seen: Ids
    answers: Ids


MASK, SEPARATOR, NOTHING = -1, -2, -3


class Exercise(Objective):
    """Works on the symbols of a row, without the [CLS] that may stand in front of them."""

    config: ExerciseConfig

    def __init__(self, config: Any, vocabulary: Vocabulary) -> None:
        """Take the options, and number the ordinary tokens of the vocabulary as symbols."""
        super().__init__(config, vocabulary)
        self._numbers = np.zeros(vocabulary.size, np.int64)
        self._numbers[vocabulary.ordinary] = np.arange(len(vocabulary.ordinary))
        self._ids = np.concatenate(
            [vocabulary.ordinary, [IGNORE, vocabulary.sep, vocabulary.mask]]
        ).astype(np.int64)

    @abstractmethod
    def pose(self, symbols: Symbols) -> Posed:
        """Return the task for these rows."""

    def places(self, symbols: Symbols) -> Ids | None:
        """Return the position that each symbol is given, 0 or more, or None: they are counted."""
        return None

    @property
    def num_symbols(self) -> int:
        """Return how many symbols there are."""
        return len(self.vocabulary.ordinary)

    def apply(
        self, ids: Ids, visible: NDArray[np.bool_], keys: Keys, counters: Counters
    ) -> tuple[Ids, Ids]:
        """Return (ids, targets). DataError if rows are padded or there are too few symbols."""
        start, symbols = self._symbols(ids, visible, keys, counters)
        posed = self.pose(symbols)
        targets = np.full_like(ids, IGNORE)
        targets[:, start:] = self._ids[posed.answers]
        seen = ids.copy()
        seen[:, start:] = self._ids[posed.seen]
        return seen, targets

    def positions(
        self, ids: Ids, visible: NDArray[np.bool_], keys: Keys, counters: Counters
    ) -> Ids | None:
        """Return the positions of the exercise, [CLS] just before the first symbol."""
        start, symbols = self._symbols(ids, visible, keys, counters)
        places = self.places(symbols)
        if places is None or not start:
            return places
        return np.concatenate([places[:, :1], places + 1], axis=1)

    def _symbols(
        self, ids: Ids, visible: NDArray[np.bool_], keys: Keys, counters: Counters
    ) -> tuple[int, Symbols]:
        start = int(ids.size > 0 and bool((ids[:, 0] == self.vocabulary.cls).all()))
        if not visible.all():
            raise DataError(
                f"the exercise '{self.config.name}' needs full rows, and these have padding; set "
                "data.layout: packed"
            )
        if ids.shape[1] - start < self.config.least_length():
            raise DataError(
                f"the exercise '{self.config.name}' needs rows of {self.config.least_length()} symbols "
                f"at least, and these have {ids.shape[1] - start}; raise data.max_length"
            )
        needed = self.config.least_symbols(ids.shape[1] - start)
        if self.num_symbols < needed:
            raise DataError(
                f"the exercise '{self.config.name}' needs {needed} symbols in rows of "
                f"{ids.shape[1] - start}, and the tokenizer has {self.num_symbols}; raise "
                "data.corpus.num_symbols, or shorten data.max_length"
            )
        return start, Symbols(self._numbers[ids[:, start:]], keys, counters[:, start:])
