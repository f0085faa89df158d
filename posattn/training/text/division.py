"""Which text is for training and which for validation; no token is in both.

By document, if that gives a validation part within half of the wanted size: documents are drawn in
an order that depends on the split seed only, until the part is full; one that would overfill it is
passed over. Else (few or very uneven documents) the last part of the text is for validation, cut
before whitespace.
"""

from array import array
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from posattn.errors import DataError
from posattn.training.text.draws import Purpose, permutation
from posattn.training.text.pieces import Piece

Part = Literal["train", "validation"]

_TOLERANCE = 0.5


@dataclass(frozen=True, eq=False)
class Census:
    """The sizes of all documents, in order; an empty document has no characters."""

    characters: NDArray[np.int64]
    sources: NDArray[np.int64]
    replaced: int

    def documents(self, source: int | None = None) -> int:
        """Return the number of documents with text, of one file or of all."""
        return int(np.count_nonzero(self.characters[self._of(source)]))

    def empty_documents(self, source: int | None = None) -> int:
        """Return the number of documents without text, of one file or of all."""
        return int(np.count_nonzero(self.characters[self._of(source)] == 0))

    def _of(self, source: int | None) -> NDArray[np.bool_] | slice:
        return slice(None) if source is None else self.sources == source


def take_census(pieces: Iterable[Piece]) -> Census:
    """Return the sizes of the documents that the pieces make up."""
    characters, sources = array("q"), array("q")
    replaced, size, blank = 0, 0, True
    for piece in pieces:
        size += len(piece.text)
        blank = blank and not piece.text.strip()
        replaced += piece.replaced
        if piece.ends:
            characters.append(0 if blank else size)
            sources.append(piece.source)
            size, blank = 0, True
    return Census(
        np.frombuffer(characters, np.int64) if characters else np.empty(0, np.int64),
        np.frombuffer(sources, np.int64) if sources else np.empty(0, np.int64),
        replaced,
    )


@dataclass(frozen=True, eq=False)
class Division:
    """Where each document goes; document `cut_document`, if any, is cut at `cut_character`."""

    in_validation: NDArray[np.bool_]
    cut_document: int
    cut_character: int
    description: str


def divide(census: Census, fraction: float, seed: int) -> Division:
    """Return the division of a text. DataError if there is no text at all."""
    if not census.characters.any():
        raise DataError(
            "no usable text: every document that was read is empty (documents: "
            f"{census.empty_documents()}); check data.corpus"
        )
    return _by_document(census, fraction, seed) or _by_tail(census, fraction)


def _by_document(census: Census, fraction: float, seed: int) -> Division | None:
    wanted = fraction * int(census.characters.sum())
    taken = np.zeros(len(census.characters), dtype=np.bool_)
    size = 0
    for index in permutation(len(taken), Purpose.DIVISION, seed).tolist():
        more = int(census.characters[index])
        if more and size + more <= (1 + _TOLERANCE) * wanted:
            taken[index] = True
            size += more
        if size >= wanted:
            break
    if size < (1 - _TOLERANCE) * wanted:
        return None
    return Division(
        taken,
        cut_document=-1,
        cut_character=0,
        description=f"{int(taken.sum())} of {census.documents()} documents are for validation",
    )


def _by_tail(census: Census, fraction: float) -> Division:
    ends = np.cumsum(census.characters)
    boundary = round((1 - fraction) * int(ends[-1]))
    document = int(np.searchsorted(ends, boundary, side="right"))
    document = min(document, len(ends) - 1)
    start = int(ends[document] - census.characters[document])
    return Division(
        np.arange(len(ends)) > document,
        cut_document=document,
        cut_character=boundary - start,
        description=f"the last {fraction:.1%} of the text are for validation",
    )


class Routed(NamedTuple):
    """A piece and the part that it belongs to."""

    part: Part
    piece: Piece


def route(pieces: Iterable[Piece], census: Census, division: Division) -> Iterator[Routed]:
    """Return the pieces of documents with text, with their part; a cut document ends in both."""
    document, passed, cut = 0, 0, False
    for piece in pieces:
        if census.characters[document]:
            if document == division.cut_document:
                for routed in _cut(piece, division.cut_character - passed, cut):
                    cut = routed.part == "validation"
                    yield routed
            else:
                yield Routed("validation" if division.in_validation[document] else "train", piece)
        passed += len(piece.text)
        if piece.ends:
            document, passed = document + 1, 0


def _cut(piece: Piece, at: int, already: bool) -> Iterator[Routed]:
    """Return a piece of the cut document, in one part or two; `at` counts from its start."""
    if already:
        yield Routed("validation", piece)
        return
    if at >= len(piece.text):
        yield Routed("train", piece)
        return
    at = _next_space(piece.text, at) if at > 0 else 0
    yield Routed("train", piece._replace(text=piece.text[:at], ends=True))
    yield Routed("validation", piece._replace(text=piece.text[at:]))


def _next_space(text: str, start: int) -> int:
    """Return the first index from `start` where whitespace follows other text, or `start`."""
    for at in range(start, len(text)):
        if text[at] in " \n" and not text[at - 1].isspace():
            return at
    return start
