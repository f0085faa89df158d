"""Bytes to text: UTF-8, one leading byte-order mark removed, CRLF as LF.

What is broken is dealt with by a stated policy, and the structure of lines is never lost.
"""

import codecs
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from posattn.errors import DataError

Policy = Literal["fail", "replace"]
"""What to do with bytes that are not UTF-8 and with NULs: stop, or put U+FFFD in their place."""

_BLOCK = 1 << 20
_REPLACEMENT = "\ufffd"
_REPLACEMENT_BYTES = _REPLACEMENT.encode()
_OTHER_MARKS = {
    codecs.BOM_UTF32_LE: "UTF-32",
    codecs.BOM_UTF32_BE: "UTF-32",
    codecs.BOM_UTF16_LE: "UTF-16",
    codecs.BOM_UTF16_BE: "UTF-16",
}


@dataclass(frozen=True)
class Decoded:
    """A stretch of text and how many places in it were replaced."""

    text: str
    replaced: int


def text_blocks(path: Path, policy: Policy) -> Iterator[Decoded]:
    """Return the text of a file in blocks of a megabyte. DataError names file and byte offset."""
    decoder = codecs.getincrementaldecoder("utf-8")("strict" if policy == "fail" else "replace")
    held_return = ""
    for offset, block in byte_blocks(path):
        pending = decoder.getstate()[0]
        block, nuls = _without_nuls(path, offset, block, policy)
        text, replaced = _decode(decoder, path, offset, pending, block)
        text = held_return + text
        held_return = "\r" if text.endswith("\r") else ""
        text = text.removesuffix("\r").replace("\r\n", "\n")
        yield Decoded(text, replaced + nuls)
    pending = decoder.getstate()[0]
    text, replaced = _decode(decoder, path, path.stat().st_size, pending, b"", final=True)
    if held_return or text:
        yield Decoded(held_return + text, replaced)


def text_lines(path: Path, policy: Policy) -> Iterator[tuple[int, Decoded]]:
    """Return (line number from 1, text without its line end) for each line of a file."""
    offset = 0
    with path.open("rb") as file:
        for number, raw in enumerate(file, start=1):
            start, offset = offset, offset + len(raw)
            if number == 1:
                raw = raw[_skipped_mark(path, raw) :]
                start = offset - len(raw)
            raw = raw.removesuffix(b"\n").removesuffix(b"\r")
            decoder = codecs.getincrementaldecoder("utf-8")(
                "strict" if policy == "fail" else "replace"
            )
            raw, nuls = _without_nuls(path, start, raw, policy)
            text, replaced = _decode(decoder, path, start, b"", raw, final=True)
            yield number, Decoded(text, replaced + nuls)


def byte_blocks(path: Path) -> Iterator[tuple[int, bytes]]:
    """Return (byte offset, bytes) of a file in blocks, without a leading byte-order mark."""
    with path.open("rb") as file:
        offset = 0
        while block := file.read(_BLOCK):
            skipped = _skipped_mark(path, block) if offset == 0 else 0
            yield offset + skipped, block[skipped:]
            offset += len(block)


def clean_text(text: str, where: str, policy: Policy) -> Decoded:
    """Return text that a parser gave, CRLF as LF, NULs and lone surrogates treated by `policy`."""
    text = text.replace("\r\n", "\n")
    broken = text.count("\0") + (0 if _encodable(text) else _count_surrogates(text))
    if not broken:
        return Decoded(text, 0)
    if policy == "fail":
        raise DataError(
            f"{where}: the text holds {broken} NUL characters or lone surrogates, which no "
            "tokenizer can take; repair the file or set encoding_errors: replace"
        )
    whole = "".join(_REPLACEMENT if c == "\0" or "\ud800" <= c <= "\udfff" else c for c in text)
    return Decoded(whole, broken)


def _skipped_mark(path: Path, start: bytes) -> int:
    for mark, name in _OTHER_MARKS.items():
        if start.startswith(mark):
            raise DataError(
                f"{path}: byte 0: the file is {name}, posattn reads UTF-8; convert it first "
                f"(for example: iconv -f {name} -t UTF-8)"
            )
    return len(codecs.BOM_UTF8) if start.startswith(codecs.BOM_UTF8) else 0


def _without_nuls(path: Path, offset: int, block: bytes, policy: Policy) -> tuple[bytes, int]:
    at = block.find(b"\0")
    if at < 0:
        return block, 0
    if policy == "fail":
        raise DataError(
            f"{path}: byte {offset + at}: a NUL; this is not plain UTF-8 text (UTF-16 without a "
            "mark, or a binary file?); convert it, or set encoding_errors: replace"
        )
    return block.replace(b"\0", _REPLACEMENT_BYTES), block.count(b"\0")


def _decode(
    decoder: codecs.IncrementalDecoder,
    path: Path,
    offset: int,
    pending: bytes,
    block: bytes,
    final: bool = False,
) -> tuple[str, int]:
    """Decode a block that follows `pending` undecoded bytes; count what was replaced."""
    try:
        text = decoder.decode(block, final)
    except UnicodeDecodeError as error:
        at = offset - len(pending) + error.start
        raise DataError(
            f"{path}: byte {at}: 0x{error.object[error.start]:02x} is not valid UTF-8 "
            f"({error.reason}); convert the file to UTF-8, or set encoding_errors: replace"
        ) from error
    given = _REPLACEMENT in text and (pending + block).count(_REPLACEMENT_BYTES)
    return text, text.count(_REPLACEMENT) - int(given)


def _encodable(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _count_surrogates(text: str) -> int:
    return sum("\ud800" <= character <= "\udfff" for character in text)
