"""`symbols`: random symbols, each drawn for itself; made here, nothing is downloaded.

For exercises, which need data with nothing to learn in it but the task.
"""

from collections.abc import Iterator
from hashlib import sha256
from typing import Literal

import numpy as np
from pydantic import Field

from posattn.cache import Progress
from posattn.training.text.corpora.base import Corpus, CorpusConfig, Source, SourceFile, corpora
from posattn.training.text.draws import Purpose, fold, words
from posattn.training.text.pieces import PIECE, Piece

_ASCII = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
_FURTHER = "".join(map(chr, range(0x100, 0x250)))
ALPHABET = _ASCII + _FURTHER
"""The symbols in code point order, so that a tokenizer of characters numbers them in this order."""


class SymbolsConfig(CorpusConfig):
    """How many symbols there are, and how many are drawn."""

    name: Literal["symbols"] = "symbols"
    num_symbols: int = Field(default=16, ge=2, le=len(ALPHABET))
    tokens: int = Field(default=400_000, ge=1)
    seed: int = Field(default=0, ge=0)
    """Decides the symbols; the same for all runs that are compared."""


@corpora.register("symbols")
class SymbolsCorpus(Corpus):
    """One document of independent symbols, all equally likely."""

    Config = SymbolsConfig
    config: SymbolsConfig
    licence = "CC0-1.0"

    def source(self, progress: Progress) -> Source:
        """Return what is known of the symbols, with the checksum of them all."""
        text = self._text().encode()
        config = self.config
        return Source(
            name="symbols",
            licence="CC0-1.0 (random numbers, nobody's work)",
            attribution="none needed",
            origin=f"SplitMix64, seed {config.seed}: {config.tokens} of {config.num_symbols} symbols",
            files=(SourceFile(name="symbols", sha256=sha256(text).hexdigest(), bytes=len(text)),),
        )

    def pieces(self) -> Iterator[Piece]:
        """Return the symbols as one document."""
        text = self._text()
        starts = range(0, len(text), PIECE)
        for start in starts:
            yield Piece(text[start : start + PIECE], 0, start == starts[-1])

    def _text(self) -> str:
        counters = np.arange(self.config.tokens, dtype=np.int64)
        drawn = words(fold(Purpose.SYMBOLS, self.config.seed), counters)
        numbers = (drawn % np.uint64(self.config.num_symbols)).astype(np.int64)
        return "".join(np.array(list(ALPHABET))[numbers].tolist())
