"""Pieces of a call whose working memory stays within a bound."""

from collections.abc import Iterator
from typing import NamedTuple

WORKING_MEMORY = 2**30
"""Bytes that scores by distance, or their gradient, may take at once; one head is never split by them."""


class Piece(NamedTuple):
    """Some sequences, heads and tokens; in a [batch, heads, tokens, ..] tensor they lie in one run."""

    batch: slice
    heads: slice
    tokens: slice


def pieces(batch: int, heads: int, tokens: int, bytes_per_token: int, step: int) -> Iterator[Piece]:
    """Yield pieces that cover all; tokens are split, at multiples of `step`, if one head is too large."""
    per_head = tokens * bytes_per_token
    sequences = WORKING_MEMORY // max(per_head * heads, 1)
    if sequences:
        for start in range(0, batch, sequences):
            yield Piece(
                slice(start, min(start + sequences, batch)), slice(0, heads), slice(0, tokens)
            )
        return
    at_once = max(WORKING_MEMORY // per_head, 1)
    in_step = max(WORKING_MEMORY // (bytes_per_token * step), 1) * step
    for one in range(batch):
        for head in range(0, heads, at_once):
            for start in range(0, tokens, in_step):
                yield Piece(
                    slice(one, one + 1),
                    slice(head, min(head + at_once, heads)),
                    slice(start, min(start + in_step, tokens)),
                )
