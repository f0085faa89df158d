"""What every corpus is: a place that text comes from, with its licence and checksums."""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Any, ClassVar

from posattn.admission import class_check
from posattn.cache import Progress
from posattn.config import FrozenConfig, NamedConfig
from posattn.registry import Registry
from posattn.training.text.pieces import Piece


class CorpusConfig(NamedConfig):
    """The options of a corpus; each kind of corpus has its own."""


class SourceFile(FrozenConfig):
    """One file of text as it was read."""

    name: str
    sha256: str
    bytes: int


class Source(FrozenConfig):
    """Where the text of a corpus comes from and under which terms."""

    name: str
    licence: str
    attribution: str
    origin: str
    files: tuple[SourceFile, ...]


class Corpus(ABC):
    """Text in documents. `source` is asked before `pieces`, which may be read several times."""

    Config: ClassVar[type[CorpusConfig]]
    licence: ClassVar[str]
    """The terms in a few words, for listings; `source` has what is known of the text itself."""

    def __init__(self, config: Any) -> None:
        """Take the options; nothing is read yet."""
        self.config = config

    @abstractmethod
    def source(self, progress: Progress) -> Source:
        """Make the text available here, if need be by fetching it, and say what it is.

        The checksums decide whether a token store fits. DataError if the text cannot be had.
        """

    @abstractmethod
    def pieces(self) -> Iterator[Piece]:
        """Return the text, document after document, always in the same order."""


corpora: Registry[type[Corpus]] = Registry(
    "corpus", "posattn.corpora", class_check(Corpus, config=CorpusConfig)
)
