"""`files`: your own text: .txt, .jsonl, .csv and .parquet files, folders of them, and globs."""

from collections.abc import Iterator
from pathlib import Path
from typing import Literal

from pydantic import Field

from posattn.cache import Progress, file_digest
from posattn.config import Many, Text
from posattn.errors import DataError
from posattn.training.text.corpora.base import Corpus, CorpusConfig, Source, SourceFile, corpora
from posattn.training.text.decoding import Policy
from posattn.training.text.pieces import Piece
from posattn.training.text.readers import READERS, Reading


class FilesConfig(CorpusConfig):
    """Which files are read, and how."""

    name: Literal["files"] = "files"
    paths: Many[Text] = Field(min_length=1)
    """Files, folders (read with all below them) and globs (`**` too), read in this order."""
    text_field: Text = "text"
    """The field or column that holds the text, in .jsonl, .csv and .parquet."""
    document_per: Literal["file", "line"] = "file"
    """What a document is in a .txt file; in the other kinds it is a row."""
    encoding_errors: Policy = "fail"
    """`fail` stops at the first broken byte; `replace` puts U+FFFD there and counts it."""
    licence: Text = "not stated"
    """The terms of the text, for the report."""
    attribution: Text = ""
    """Whom the text is owed to, for the report."""


@corpora.register("files")
class FilesCorpus(Corpus):
    """Text from local files; nothing is copied but the tokens."""

    Config = FilesConfig
    licence = "yours to state"
    config: FilesConfig

    def source(self, progress: Progress) -> Source:
        """Return the files found with their checksums; every byte is read once for them."""
        progress("reading the checksums of the text files")
        found = self._files()
        return Source(
            name="files",
            licence=self.config.licence,
            attribution=self.config.attribution,
            origin=", ".join(self.config.paths),
            files=tuple(
                SourceFile(name=str(path), sha256=file_digest(path), bytes=path.stat().st_size)
                for path in found
            ),
        )

    def pieces(self) -> Iterator[Piece]:
        """Return the documents, file after file."""
        how = Reading(self.config.text_field, self.config.encoding_errors, self.config.document_per)
        for index, path in enumerate(self._files()):
            yield from READERS[path.suffix.lower()](path, index, how)

    def _files(self) -> list[Path]:
        """Return each file once, in the order of the recipe and then by name."""
        found: dict[Path, Path] = {}
        for pattern in self.config.paths:
            for path in _matches(pattern):
                found.setdefault(path.resolve(), path)
        return list(found.values())


def _matches(pattern: str) -> list[Path]:
    """Return the files that one entry of `paths` stands for; at least one."""
    path = Path(pattern)
    if path.is_file():
        return [_readable(path)]
    if path.is_dir():
        return _inside(path)
    hits = sorted(Path(path.anchor).glob(str(path.relative_to(path.anchor))))
    if not hits:
        raise DataError(f"no such file, folder or glob: {pattern}{_nearest(path)}")
    return [file for hit in hits for file in (_inside(hit) if hit.is_dir() else [_readable(hit)])]


def _inside(folder: Path) -> list[Path]:
    files = sorted(
        file
        for file in folder.rglob("*")
        if file.suffix.lower() in READERS
        and file.is_file()
        and not any(part.startswith(".") for part in file.relative_to(folder).parts)
    )
    if not files:
        raise DataError(f"the folder {folder} holds no text file ({', '.join(READERS)})")
    return files


def _readable(path: Path) -> Path:
    if path.suffix.lower() not in READERS:
        raise DataError(
            f"{path}: cannot read a '{path.suffix}' file; known kinds: {', '.join(READERS)}"
        )
    return path


def _nearest(path: Path) -> str:
    """Return a hint: the part of a missing path that does exist."""
    for parent in path.parents:
        if parent.is_dir() and parent != Path():
            names = sorted(entry.name for entry in parent.iterdir())[:8]
            return f" (the folder {parent} exists and holds: {', '.join(names) or 'nothing'})"
    return ""
