import codecs
import csv
import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from posattn.errors import DataError
from posattn.training.text.readers import READERS, Reading

LINES = ["first line", "zweite Zeile, größer", 'third "quoted", with comma']


def documents(path: Path, how: Reading | None = None) -> list[str]:
    found, text = [], ""
    for piece in READERS[path.suffix](path, 0, how or Reading("text", "fail", "line")):
        text += piece.text
        if piece.ends:
            found.append(text)
            text = ""
    assert text == ""
    return found


def write(path: Path, lines: list[str], mark: bytes = b"") -> Path:
    """Write lines as .txt, .jsonl or .csv by the suffix."""
    if path.suffix == ".jsonl":
        text = "".join(json.dumps({"id": 1, "text": line}) + "\n" for line in lines)
    elif path.suffix == ".csv":
        with path.open("w", newline="", encoding="utf-8") as file:
            csv.writer(file).writerows([["text", "id"], *([line, "1"] for line in lines)])
        text = path.read_text(encoding="utf-8")
    else:
        text = "\n".join(lines) + "\n"
    path.write_bytes(mark + text.encode())
    return path


@pytest.mark.parametrize("suffix", [".txt", ".jsonl", ".csv"])
def test_a_byte_order_mark_changes_nothing(tmp_path: Path, suffix: str) -> None:
    plain = write(tmp_path / f"plain{suffix}", LINES)
    marked = write(tmp_path / f"marked{suffix}", LINES, codecs.BOM_UTF8)
    assert documents(plain) == documents(marked) == LINES


@pytest.mark.parametrize("suffix", [".txt", ".jsonl", ".csv"])
def test_crlf_changes_nothing(tmp_path: Path, suffix: str) -> None:
    path = write(tmp_path / f"text{suffix}", LINES)
    path.write_bytes(path.read_bytes().replace(b"\r\n", b"\n").replace(b"\n", b"\r\n"))
    assert documents(path) == LINES


def test_a_parquet_column_is_read_row_by_row(tmp_path: Path) -> None:
    path = tmp_path / "text.parquet"
    pq.write_table(pa.table({"body": [*LINES, None, ""], "id": range(5)}), path)
    how = Reading("body", "fail", "file")
    assert documents(path, how) == [*LINES, "", ""]
    with pytest.raises(DataError, match=r"no field 'text' \(found: body, id\); set text_field"):
        documents(path)


def test_a_txt_file_is_one_document_or_one_for_each_line(tmp_path: Path) -> None:
    path = tmp_path / "text.txt"
    path.write_bytes(b"a b\n\nc")
    assert documents(path, Reading("text", "fail", "file")) == ["a b\n\nc"]
    assert documents(path, Reading("text", "fail", "line")) == ["a b", "", "c"]


def test_replacing_a_bad_byte_never_joins_lines(tmp_path: Path) -> None:
    path = tmp_path / "text.txt"
    path.write_bytes(b"ab\n\xc9x\r\ncd")
    assert documents(path, Reading("text", "replace", "line")) == ["ab", "\ufffdx", "cd"]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ('{"text": "a"}\n{"text": ', r"line 2: not JSON"),
        ('{"txt": "a"}\n', r"line 1: no field 'text' \(found: txt\)"),
        ('["a"]\n', r"line 1: expected an object with a field 'text'"),
        ('{"text": 3}\n', r"line 1: the field 'text' is int, expected text"),
        ('{"text": "a\\u0000"}\n', r"line 1: the text holds 1 NUL"),
        ("[" * 100_000, r"line 1: not JSON"),
    ],
)
def test_a_bad_json_line_is_named(tmp_path: Path, content: str, message: str) -> None:
    path = tmp_path / "text.jsonl"
    path.write_text(content)
    with pytest.raises(DataError, match=message):
        documents(path)


def test_csv_fields_may_be_long_and_may_hold_newlines(tmp_path: Path) -> None:
    limit = csv.field_size_limit()
    path = write(tmp_path / "text.csv", ["two\nlines", "x" * (limit + 1)])
    assert documents(path) == ["two\nlines", "x" * (limit + 1)]
    assert csv.field_size_limit() == limit


def test_a_bad_csv_file_is_named(tmp_path: Path) -> None:
    path = tmp_path / "text.csv"
    path.write_text('text\n"open\n')
    with pytest.raises(DataError, match=r"text\.csv: not CSV"):
        documents(path)


def test_a_bad_parquet_file_is_named(tmp_path: Path) -> None:
    path = tmp_path / "text.parquet"
    path.write_bytes(b"PAR1 nothing")
    with pytest.raises(DataError, match=r"text\.parquet: not a readable Parquet file"):
        documents(path)
