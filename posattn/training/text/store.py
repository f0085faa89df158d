"""The token store: a folder of raw numbers that is written once and memory-mapped by every run.

`PART.tokens` holds the documents one after another, each followed by [SEP]; `PART.offsets` where
each document starts, and the end. `store.json`, written last, has the sizes and checksums of all
files.
"""

import json
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from posattn.cache import file_digest

VERSION = 1
"""Part of every cache key; it grows when the reading of text or the files of the store change."""

_MANIFEST = "store.json"
_CHECKED = 256 << 20


class PartWriter:
    """Writes the tokens of one part, document by document."""

    def __init__(self, folder: Path, part: str, dtype: np.dtype[Any], separator: int) -> None:
        """Open the files of `part` in `folder`."""
        self._tokens = folder.joinpath(f"{part}.tokens").open("wb")
        self._offsets = folder.joinpath(f"{part}.offsets").open("wb")
        self._dtype = dtype
        self._separator = np.array([separator], dtype=dtype)
        self._open = 0
        self._written = 0
        self.tokens = 0
        self.documents = 0

    def __enter__(self) -> "PartWriter":
        self._offsets.write(np.zeros(1, np.int64).tobytes())
        return self

    def add(self, ids: Sequence[int]) -> None:
        """Append tokens to the document that is open."""
        self._tokens.write(np.array(ids, dtype=self._dtype).tobytes())
        self._open += len(ids)

    def end_document(self) -> None:
        """Close the document with a separator; one without tokens leaves no trace."""
        if not self._open:
            return
        self._tokens.write(self._separator.tobytes())
        self.tokens += self._open
        self.documents += 1
        self._written += self._open + 1
        self._offsets.write(np.array([self._written], np.int64).tobytes())
        self._open = 0

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._tokens.close()
        self._offsets.close()


def token_dtype(vocab_size: int) -> np.dtype[Any]:
    """Return the smallest of uint16 and uint32 that holds every id."""
    return np.dtype("<u2") if vocab_size <= 1 << 16 else np.dtype("<u4")


def seal(folder: Path, dtype: np.dtype[Any]) -> None:
    """Write the manifest: from now on the store is complete."""
    files = {
        path.name: {"bytes": path.stat().st_size, "sha256": file_digest(path)}
        for path in sorted(folder.iterdir())
    }
    manifest = {"version": VERSION, "dtype": dtype.str, "files": files}
    (folder / _MANIFEST).write_text(json.dumps(manifest, indent=1), encoding="utf-8")


def store_problem(folder: Path) -> str | None:
    """Return what is wrong with a store, or None.

    Sizes are always compared, checksums for the files that fit into 256 MiB together, small ones
    first.
    """
    try:
        manifest = json.loads((folder / _MANIFEST).read_text(encoding="utf-8"))
        files = sorted(manifest["files"].items(), key=lambda entry: entry[1]["bytes"])
        left = _CHECKED
        for name, facts in files:
            path = folder / name
            if path.stat().st_size != facts["bytes"]:
                return f"{name} has {path.stat().st_size} bytes, expected {facts['bytes']}"
            left -= facts["bytes"]
            if left >= 0 and file_digest(path) != facts["sha256"]:
                return f"the checksum of {name} does not fit"
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        return f"its manifest does not fit ({type(error).__name__}: {error})"
    return None


def open_part(folder: Path, part: str) -> tuple[NDArray[Any], NDArray[np.int64]]:
    """Return the tokens and the offsets of a part, memory-mapped and read-only."""
    dtype = json.loads((folder / _MANIFEST).read_text(encoding="utf-8"))["dtype"]
    return _mapped(folder / f"{part}.tokens", dtype), _mapped(folder / f"{part}.offsets", "<i8")


def _mapped(path: Path, dtype: str) -> NDArray[Any]:
    if path.stat().st_size == 0:
        return np.empty(0, dtype=dtype)
    return np.memmap(path, dtype=dtype, mode="r")
