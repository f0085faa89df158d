"""`hub`: a dataset of the Hugging Face hub, or a local folder that `datasets` can load.

The text column is written once into the cache, with its checksum. All arms and seeds of a study
then read the same text, also offline and when the dataset changes on the hub. Delete the folder, or
name another `revision`, to read it anew.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

from pydantic import Field

from posattn.cache import (
    Progress,
    build_once,
    cache_folder,
    file_digest,
    value_digest,
)
from posattn.config import Text
from posattn.errors import DataError
from posattn.training.text.corpora.base import Corpus, CorpusConfig, Source, SourceFile, corpora
from posattn.training.text.pieces import Piece
from posattn.training.text.readers import Reading, read_parquet

_TEXTS = "texts.parquet"
_ABOUT = "about.json"
_ROWS = 256


class HubConfig(CorpusConfig):
    """Which dataset is read."""

    name: Literal["hub"] = "hub"
    dataset: Text
    """The name on the hub (`owner/name`), or a folder, written as `./folder`, `../folder` or `/folder`."""
    config: Text | None = None
    """The configuration (subset) of the dataset, where it has several."""
    split: Text = "train"
    text_field: Text = "text"
    revision: Text | None = None
    """A commit, tag or branch of the dataset; give a commit to pin the text."""
    streaming: bool = False
    """Read row by row instead of downloading the whole split; use it with `limit_documents`."""
    limit_documents: int | None = Field(default=None, ge=1)
    """Read this many rows from the start only."""


@corpora.register("hub")
class HubCorpus(Corpus):
    """A dataset by its name on the Hugging Face hub."""

    Config = HubConfig
    licence = "as the dataset states"
    config: HubConfig

    def source(self, progress: Progress) -> Source:
        """Return what the dataset says of itself, after reading its text column into the cache."""
        build_once(
            self._folder(), lambda aside: self._fill(aside, progress), _copy_problem, progress
        )
        return Source.model_validate_json((self._folder() / _ABOUT).read_text(encoding="utf-8"))

    def pieces(self) -> Iterator[Piece]:
        """Return the rows in the order of the dataset."""
        how = Reading(text_field="text", policy="replace", document_per="file")
        return read_parquet(self._folder() / _TEXTS, 0, how)

    def _folder(self) -> Path:
        chosen = self.config.model_dump(exclude={"streaming"})
        place = Path(self.config.dataset)
        if place.is_dir():
            if not place.is_absolute():
                raise DataError(
                    f"data.corpus.dataset '{place}' may be a dataset of the hub or the folder "
                    f"{place.absolute()}; write ./{place} for the folder (in a recipe file: "
                    "relative to the file), or run where there is no such folder"
                )
            files = sorted(path for path in place.rglob("*") if path.is_file())
            chosen["files"] = [[str(f.relative_to(place)), file_digest(f)] for f in files]
        return cache_folder() / "corpora" / f"hub-{value_digest(chosen)[:24]}"

    def _fill(self, aside: Path, progress: Progress) -> None:
        progress(f"reading the dataset {self.config.dataset} ({self.config.split})")
        rows = self._load()
        path = aside / _TEXTS
        count = _write_texts(path, self._texts(rows), progress)
        info = rows.info
        source = Source(
            name=f"hub: {self.config.dataset}",
            licence=info.license or "not stated by the dataset",
            attribution=" ".join((info.citation or info.homepage or self.config.dataset).split()),
            origin=(
                f"dataset {self.config.dataset}, config {self.config.config or 'default'}, split "
                f"{self.config.split}, revision {self.config.revision or 'newest'}, {count} rows"
            ),
            files=(SourceFile(name=_TEXTS, sha256=file_digest(path), bytes=path.stat().st_size),),
        )
        (aside / _ABOUT).write_text(source.model_dump_json(indent=1), encoding="utf-8")

    def _load(self) -> Any:
        import datasets

        try:
            return datasets.load_dataset(
                self.config.dataset,
                self.config.config,
                split=self.config.split,
                streaming=self.config.streaming,
                revision=self.config.revision,
            )
        except (OSError, ValueError, RuntimeError, datasets.exceptions.DatasetsError) as error:
            raise DataError(
                f"cannot load the dataset '{self.config.dataset}' "
                f"(config {self.config.config or 'default'}, split '{self.config.split}'): "
                f"{type(error).__name__}: {error}. Check the names and the network; a private "
                "dataset needs a login (HF_TOKEN)"
            ) from error

    def _rows(self, rows: Any) -> Iterator[dict[str, object]]:
        """Return the rows; whatever stops the dataset half-way becomes a DataError."""
        import datasets

        try:
            yield from rows
        except (OSError, ValueError, RuntimeError, datasets.exceptions.DatasetsError) as error:
            raise DataError(
                f"reading the dataset '{self.config.dataset}' stopped: {type(error).__name__}: "
                f"{error}; nothing was kept; try again, or set limit_documents"
            ) from error

    def _texts(self, rows: Any) -> Iterator[str]:
        field = self.config.text_field
        limit = self.config.limit_documents
        for number, row in enumerate(self._rows(rows.take(limit) if limit else rows)):
            if field not in row:
                raise DataError(
                    f"the dataset '{self.config.dataset}' has no field '{field}' "
                    f"(found: {', '.join(row)}); set text_field"
                )
            value = row[field]
            if value is not None and not isinstance(value, str):
                raise DataError(
                    f"the field '{field}' of the dataset '{self.config.dataset}', row {number}, is "
                    f"{type(value).__name__}, expected text"
                )
            yield value or ""


def _write_texts(path: Path, texts: Iterator[str], progress: Progress) -> int:
    """Write the texts as one Parquet column, some rows at a time; return their number."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    schema = pa.schema([("text", pa.large_string())])
    count, held = 0, 0
    rows: list[str] = []
    with pq.ParquetWriter(path, schema, compression="zstd") as writer:

        def flush() -> None:
            writer.write_table(pa.table({"text": pa.array(rows, pa.large_string())}, schema=schema))
            rows.clear()

        for text in texts:
            rows.append(text)
            count, held = count + 1, held + len(text)
            if len(rows) == _ROWS or held > 1 << 24:
                flush()
                held = 0
            if count % 10_000 == 0:
                progress(f"read {count} rows")
        flush()
    return count


def _copy_problem(folder: Path) -> str | None:
    """Return what is wrong with the copy of a dataset, or None."""
    try:
        about = Source.model_validate_json((folder / _ABOUT).read_text(encoding="utf-8"))
        if file_digest(folder / _TEXTS) != about.files[0].sha256:
            return "the text changed since it was copied"
    except (OSError, ValueError, IndexError) as error:
        return f"its description does not fit ({type(error).__name__}: {error})"
    return None
