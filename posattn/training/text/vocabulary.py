"""What masking and batching need to know of a tokenizer: ids, not text."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, eq=False)
class Vocabulary:
    """The ids of a tokenizer. `size` is the largest id plus one: the rows of an embedding."""

    size: int
    pad: int
    unk: int
    cls: int
    sep: int
    mask: int
    special: NDArray[np.int64]
    """All special ids, those that a user added too, ascending."""
    ordinary: NDArray[np.int64]
    """All other ids that the tokenizer has, ascending; gaps in the numbering are in neither."""

    def is_special(self, ids: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Return which ids are special."""
        table = np.zeros(self.size, dtype=np.bool_)
        table[self.special] = True
        return table[ids]
