"""Tokens to rows: packed blocks or padded documents, at any length.

A sample is a row of the layout; its number never depends on the batch. `origin` is the place in the
part's token stream that column 0 stands for (one before its first token, if [CLS] is there), so a
token has the same `origin + column` in every layout and at every length.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from posattn.training.text.vocabulary import Vocabulary

Ids = NDArray[np.int64]
Flags = NDArray[np.bool_]


@dataclass(frozen=True)
class Layout:
    """How tokens become rows; the fields are those of `DataConfig`."""

    kind: Literal["packed", "padded"]
    max_length: int
    cls: bool
    across_documents: bool
    order: Literal["shuffled", "streams"]
    padding_side: Literal["right", "left"]


@dataclass(frozen=True, eq=False)
class Rows:
    """Some samples before masking, padded on the right to the longest of them."""

    ids: Ids
    visible: Flags
    documents: Ids | None
    origins: Ids


class Samples(ABC):
    """All rows of a part at one length."""

    def __init__(
        self,
        tokens: NDArray[Any],
        offsets: NDArray[np.int64],
        layout: Layout,
        vocabulary: Vocabulary,
        length: int,
        limit_tokens: int | None = None,
    ) -> None:
        """Lay out `tokens` in rows of `length`, using the first `limit_tokens` only if given."""
        self.tokens = tokens
        self.offsets = offsets
        self.layout = layout
        self.vocabulary = vocabulary
        self.length = length
        self.used = len(tokens) if limit_tokens is None else min(limit_tokens, len(tokens))

    @abstractmethod
    def __len__(self) -> int:
        """Return the number of rows."""

    @property
    @abstractmethod
    def leftover_tokens(self) -> int:
        """The tokens at the end of those used that fill no row."""

    @abstractmethod
    def rows(self, samples: Ids) -> Rows:
        """Return the rows of these samples."""


class PackedSamples(Samples):
    """Blocks of equal length from the joined documents; a last incomplete block is left over."""

    def __len__(self) -> int:
        """Return the number of complete blocks."""
        return self.used // self.payload

    @property
    def payload(self) -> int:
        """The tokens of the stream in a row: its length without [CLS]."""
        return self.length - int(self.layout.cls)

    @property
    def leftover_tokens(self) -> int:
        """The tokens of the last, incomplete block."""
        return self.used % self.payload

    def rows(self, samples: Ids) -> Rows:
        """Return these blocks."""
        places = samples[:, None] * self.payload + np.arange(self.payload)
        ids = self.tokens[places].astype(np.int64)
        documents = None if self.layout.across_documents else self._documents(places)
        origins = samples * self.payload
        if self.layout.cls:
            first = np.full((len(samples), 1), self.vocabulary.cls, np.int64)
            ids = np.concatenate([first, ids], axis=1)
            origins = origins - 1
            if documents is not None:
                documents = np.concatenate([np.zeros_like(first), documents], axis=1)
        return Rows(ids, np.ones(ids.shape, np.bool_), documents, origins)

    def _documents(self, places: Ids) -> Ids:
        """Return the document of each token, from 0 in each block; [SEP] ends its document."""
        numbers = np.searchsorted(self.offsets, places, side="right")
        return (numbers - numbers[:, :1]).astype(np.int64)


class PaddedSamples(Samples):
    """A row per document; a longer document is cut into pieces, all of which are used."""

    def __init__(
        self,
        tokens: NDArray[Any],
        offsets: NDArray[np.int64],
        layout: Layout,
        vocabulary: Vocabulary,
        length: int,
        limit_tokens: int | None = None,
    ) -> None:
        """Count the pieces of each document that starts within the first `limit_tokens`."""
        super().__init__(tokens, offsets, layout, vocabulary, length, limit_tokens)
        self.payload = length - 2 * int(layout.cls)
        documents = int(np.searchsorted(offsets[:-1], self.used, side="left"))
        self._starts = offsets[:documents]
        self._lengths = np.diff(offsets[: documents + 1]) - 1
        pieces = -(-self._lengths // self.payload)
        self._pieces_before = np.concatenate([np.zeros(1, np.int64), np.cumsum(pieces)])
        self.used = int(offsets[documents])

    def __len__(self) -> int:
        """Return the number of pieces of all documents."""
        return int(self._pieces_before[-1])

    @property
    def leftover_tokens(self) -> int:
        """Return 0: every piece is used."""
        return 0

    def rows(self, samples: Ids) -> Rows:
        """Return these pieces, framed by [CLS] and [SEP] if the layout says so."""
        documents = np.searchsorted(self._pieces_before, samples, side="right") - 1
        begin = (samples - self._pieces_before[documents]) * self.payload
        sizes = np.minimum(self._lengths[documents] - begin, self.payload)
        starts = self._starts[documents] + begin
        columns = np.arange(int(sizes.max()))
        inside = columns < sizes[:, None]
        places = np.minimum(starts[:, None] + columns, len(self.tokens) - 1)
        ids = np.where(inside, self.tokens[places].astype(np.int64), self.vocabulary.pad)
        if not self.layout.cls:
            return Rows(ids, inside, None, starts)
        return self._framed(ids, sizes, starts)

    def _framed(self, ids: Ids, sizes: Ids, starts: Ids) -> Rows:
        framed = np.full((len(ids), ids.shape[1] + 2), self.vocabulary.pad, np.int64)
        framed[:, 0] = self.vocabulary.cls
        framed[:, 1:-1] = ids
        framed[np.arange(len(ids)), sizes + 1] = self.vocabulary.sep
        visible = np.arange(framed.shape[1]) < sizes[:, None] + 2
        return Rows(framed, visible, None, starts - 1)


LAYOUTS: dict[str, type[Samples]] = {"packed": PackedSamples, "padded": PaddedSamples}
