"""Which tokens a masked language model must restore, and what it sees in their place."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from posattn.training.text.draws import Counters, Keys, Purpose, fold, uniforms
from posattn.training.text.vocabulary import Vocabulary

IGNORE = -100
"""The target of a token that is not to be restored; what torch's cross-entropy leaves out."""


@dataclass(frozen=True)
class Shares:
    """What becomes of a selected token: probabilities of the three classes, together 1."""

    mask: float
    random: float
    keep: float


def mask_tokens(
    ids: NDArray[np.int64],
    visible: NDArray[np.bool_],
    keys: Keys,
    counters: Counters,
    vocabulary: Vocabulary,
    probability: float,
    shares: Shares,
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return (ids as the model sees them, targets) for rows of tokens.

    Each token is drawn for with its row's key and its own counter, so the result does not depend on
    the other rows. A selected token is put into one of three classes by one draw: [MASK], a random
    ordinary id (it may by chance be the right one, as in BERT), or itself. Special ids and padding
    are never selected.
    """
    selectable = visible & ~vocabulary.is_special(ids)
    selected = selectable & (uniforms(_stream(keys, Purpose.SELECTION), counters) < probability)
    choice = uniforms(_stream(keys, Purpose.CLASS), counters)
    random_until = 1.0 - shares.keep if shares.random else shares.mask
    masked = selected & (choice < shares.mask)
    replaced = selected & (choice >= shares.mask) & (choice < random_until)
    at = uniforms(_stream(keys, Purpose.REPLACEMENT), counters) * len(vocabulary.ordinary)
    seen = np.where(masked, vocabulary.mask, ids)
    seen = np.where(replaced, vocabulary.ordinary[at.astype(np.int64)], seen)
    return seen, np.where(selected, ids, IGNORE)


def _stream(keys: Keys, purpose: Purpose) -> Keys:
    return fold(int(purpose), keys.view(np.int64))[:, None]
