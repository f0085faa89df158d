"""One file to documents: a reader per file suffix."""

import csv
import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Literal, NamedTuple

from posattn.errors import DataError
from posattn.training.text.decoding import Policy, clean_text, text_blocks, text_lines
from posattn.training.text.pieces import Piece, pieces_of


class Reading(NamedTuple):
    """How the files of a corpus are read."""

    text_field: str
    policy: Policy
    document_per: Literal["file", "line"]


def read_txt(path: Path, source: int, how: Reading) -> Iterator[Piece]:
    """Return the documents of a plain text file: the file, or each of its lines."""
    if how.document_per == "file":
        blocks = ((block.text, block.replaced) for block in text_blocks(path, how.policy))
        yield from pieces_of(blocks, source)
        return
    open_line: list[tuple[str, int]] = []
    for block in text_blocks(path, how.policy):
        first, *rest = block.text.split("\n")
        open_line.append((first, block.replaced))
        for line in rest:
            yield from pieces_of(open_line, source)
            open_line = [(line, 0)]
    if any(text for text, _ in open_line):
        yield from pieces_of(open_line, source)


def read_jsonl(path: Path, source: int, how: Reading) -> Iterator[Piece]:
    """Return the documents of a JSON-lines file: `text_field` of each line."""
    for number, line in text_lines(path, how.policy):
        where = f"{path}, line {number}"
        if not line.text.strip():
            continue
        try:
            row = json.loads(line.text)
        except (json.JSONDecodeError, RecursionError) as error:
            raise DataError(f"{where}: not JSON: {error}") from error
        if not isinstance(row, dict):
            raise DataError(f"{where}: expected an object with a field '{how.text_field}'")
        yield from _field(
            row.get(how.text_field, _ABSENT), list(row), where, source, how, line.replaced
        )


def read_csv(path: Path, source: int, how: Reading) -> Iterator[Piece]:
    """Return the documents of a CSV file with a header: the column `text_field` of each row."""
    replaced = 0

    def lines() -> Iterator[str]:
        nonlocal replaced
        for _, line in text_lines(path, how.policy):
            replaced += line.replaced
            yield line.text + "\n"

    before = csv.field_size_limit(sys.maxsize)
    try:
        rows = csv.DictReader(lines(), strict=True)
        for number, row in enumerate(rows, start=1):
            where = f"{path}, row {number}"
            value = row.get(how.text_field, _ABSENT)
            names = [str(name) for name in rows.fieldnames or ()]
            yield from _field(value, names, where, source, how, replaced)
            replaced = 0
    except csv.Error as error:
        raise DataError(f"{path}: not CSV: {error}") from error
    finally:
        csv.field_size_limit(before)


def read_parquet(path: Path, source: int, how: Reading) -> Iterator[Piece]:
    """Return the documents of a Parquet file: the column `text_field`, a few rows at a time."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        with pq.ParquetFile(path) as file:
            names = list(file.schema_arrow.names)
            if how.text_field not in names:
                raise DataError(_no_field(str(path), how.text_field, names))
            number = 0
            for batch in file.iter_batches(batch_size=64, columns=[how.text_field]):
                for value in batch.column(0):
                    number += 1
                    where = f"{path}, row {number}"
                    yield from _field(value.as_py(), names, where, source, how, 0)
    except (pa.ArrowInvalid, UnicodeDecodeError) as error:
        raise DataError(f"{path}: not a readable Parquet file: {error}") from error


READERS: dict[str, Callable[[Path, int, Reading], Iterator[Piece]]] = {
    ".txt": read_txt,
    ".jsonl": read_jsonl,
    ".csv": read_csv,
    ".parquet": read_parquet,
}

_ABSENT = object()


def _field(
    value: object, names: list[str], where: str, source: int, how: Reading, replaced: int
) -> Iterator[Piece]:
    """Return the document in a field; a null is an empty document."""
    if value is _ABSENT:
        raise DataError(_no_field(where, how.text_field, names))
    if value is not None and not isinstance(value, str):
        raise DataError(
            f"{where}: the field '{how.text_field}' is {type(value).__name__}, expected text"
        )
    clean = clean_text(value or "", where, how.policy)
    yield from pieces_of([(clean.text, clean.replaced + replaced)], source)


def _no_field(where: str, wanted: str, names: list[str]) -> str:
    return f"{where}: no field '{wanted}' (found: {', '.join(names) or 'none'}); set text_field"
