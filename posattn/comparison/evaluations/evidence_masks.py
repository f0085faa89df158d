"""Masks in spans, and the distance of every place to the nearest evidence on either side."""

import numpy as np
from numpy.typing import NDArray

from posattn.training.text.draws import Keys, Purpose, fold, uniforms

Flags = NDArray[np.bool_]
Whole = NDArray[np.int64]

NONE = np.iinfo(np.int64).max
"""The distance where no evidence is on that side."""


def span_masks(shape: tuple[int, ...], keys: Keys, spans: tuple[int, ...], gap: int) -> Flags:
    """Return which places of rows are in spans: `gap` visible tokens on average, then a span, and so on.

    A gap has 1 to 2 `gap` - 1 tokens and a span one of the lengths, drawn by the row's key alone.
    """
    rows, length = shape
    most = length // 2 + 1  # a gap and a span take 2 places at least
    draws = uniforms(
        fold(int(Purpose.SELECTION), keys.view(np.int64))[:, None], np.arange(2 * most)
    )
    gaps = 1 + (draws[:, :most] * (2 * gap - 1)).astype(np.int64)
    sizes = np.asarray(spans)[(draws[:, most:] * len(spans)).astype(np.int64)]
    ends = np.cumsum(gaps + sizes, axis=1)
    marks = np.zeros((rows, length + 1), np.int64)
    row = np.arange(rows)[:, None]
    np.add.at(marks, (row, np.minimum(ends - sizes, length)), 1)
    np.add.at(marks, (row, np.minimum(ends, length)), -1)
    chosen: Flags = np.cumsum(marks, axis=1)[:, :length] > 0
    return chosen


def distances(evidence: Flags, documents: Whole | None = None) -> tuple[Whole, Whole]:
    """Return the distance of each place to the nearest evidence on its left and on its right.

    `NONE` where there is none. Only a token's own document counts, if documents are given.
    """
    left = _to_the_left(evidence, documents)
    flipped = None if documents is None else documents[:, ::-1]
    return left, _to_the_left(evidence[:, ::-1], flipped)[:, ::-1]


def _to_the_left(evidence: Flags, documents: Whole | None) -> Whole:
    place = np.broadcast_to(np.arange(evidence.shape[1]), evidence.shape)
    last = np.maximum.accumulate(np.where(evidence, place, -1), axis=1)
    before = np.concatenate([np.full((len(last), 1), -1), last[:, :-1]], axis=1)
    found = before >= 0
    if documents is not None:
        row = np.arange(len(evidence))[:, None]
        found &= documents[row, np.maximum(before, 0)] == documents
    return np.where(found, place - before, NONE)
