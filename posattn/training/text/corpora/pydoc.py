"""`pydoc`: the language reference that CPython carries for `help()`.

It needs no download, so it is for tests and first steps.
"""

import platform
from collections.abc import Iterator
from hashlib import sha256
from typing import Literal

from posattn.cache import Progress
from posattn.errors import DataError
from posattn.training.text.corpora.base import Corpus, CorpusConfig, Source, SourceFile, corpora
from posattn.training.text.pieces import Piece, pieces_of


class PydocConfig(CorpusConfig):
    """`pydoc` has no options. Its text changes with the Python version, and its checksum tells."""

    name: Literal["pydoc"] = "pydoc"


@corpora.register("pydoc")
class PydocCorpus(Corpus):
    """About 0.5 MB of English about Python, one document per help topic."""

    Config = PydocConfig
    licence = "PSF-2.0"

    def source(self, progress: Progress) -> Source:
        """Return what is known of the topics of this interpreter."""
        joined = "\0".join(f"{name}\0{text}" for name, text in self._topics()).encode()
        version = platform.python_version()
        return Source(
            name="pydoc",
            licence="PSF-2.0 (Python Software Foundation License)",
            attribution="The Python Language Reference, Python Software Foundation",
            origin=f"pydoc_data.topics of {platform.python_implementation()} {version}",
            files=(
                SourceFile(
                    name="pydoc_data.topics", sha256=sha256(joined).hexdigest(), bytes=len(joined)
                ),
            ),
        )

    def pieces(self) -> Iterator[Piece]:
        """Return the topics by name."""
        for _, text in self._topics():
            yield from pieces_of([(text, 0)], 0)

    def _topics(self) -> list[tuple[str, str]]:
        try:
            from pydoc_data.topics import topics
        except ImportError as error:
            raise DataError(
                "this Python comes without pydoc_data.topics, which the corpus 'pydoc' is; "
                "choose another corpus or a complete Python"
            ) from error
        return sorted(topics.items())
