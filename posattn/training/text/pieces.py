"""Text as a stream of pieces: a document of any size is read and encoded in bounded memory.

A long document is cut where whitespace follows other text. Byte-level BPE, WordPiece and characters
give the same tokens for the pieces as for the whole there, since none of them joins a word to the
whitespace after it. Only a run of more than `LONGEST` characters without whitespace is cut
elsewhere.
"""

from collections.abc import Iterable, Iterator
from typing import NamedTuple

PIECE = 1 << 16
"""Characters in a piece, about."""

LONGEST = 1 << 18
"""Characters in a piece, at most."""


class Piece(NamedTuple):
    """A stretch of a document."""

    text: str
    source: int
    """The index of the file that it comes from."""
    ends: bool
    """Whether the document ends here."""
    replaced: int = 0
    """Undecodable bytes and NULs that were replaced in this stretch or just before it."""


def cut_before_space(text: str) -> int:
    """Return the last index at which whitespace follows other text, or 0 if there is none."""
    at = max(text.rfind(" "), text.rfind("\n"))
    while at > 0 and _is_space(text[at - 1]):
        at -= 1
    return max(at, 0)


def _is_space(character: str) -> bool:
    """Whether Unicode calls it white space; Python counts four separators more."""
    return character.isspace() and character not in "\x1c\x1d\x1e\x1f"


def pieces_of(blocks: Iterable[tuple[str, int]], source: int) -> Iterator[Piece]:
    """Return one document, given as (text, replacements) blocks of any size, as pieces."""
    held, replaced = "", 0
    for text, replacements in blocks:
        held += text
        replaced += replacements
        start = 0
        while len(held) - start > PIECE:
            window = held[start : start + PIECE]
            at = cut_before_space(window)
            if at == 0 and len(held) - start > LONGEST:
                window = held[start : start + LONGEST]
                at = cut_before_space(window) or LONGEST
            if at == 0:
                break
            yield Piece(held[start : start + at], source, False, replaced)
            start, replaced = start + at, 0
        held = held[start:]
    yield Piece(held, source, True, replaced)
