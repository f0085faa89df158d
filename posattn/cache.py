"""The cache folder, and folders in it that are built once: whole or not at all, by one process."""

import json
import os
import shutil
import uuid
import warnings
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path

from filelock import FileLock, Timeout
from platformdirs import user_cache_dir

from posattn.errors import DataError

Progress = Callable[[str], None]
"""Told one sentence at each stage of a long preparation."""

_VARIABLE = "POSATTN_CACHE"
_BLOCK = 1 << 20


def cache_folder() -> Path:
    """Return the cache folder: POSATTN_CACHE if set, else the platform's own place for caches."""
    chosen = os.environ.get(_VARIABLE)
    return Path(chosen).expanduser() if chosen else Path(user_cache_dir("posattn", appauthor=False))


def silent(stage: str) -> None:
    """Tell nobody: the progress function of a caller that gave none."""


def file_digest(path: Path) -> str:
    """Return the SHA-256 of a file, read in blocks."""
    digest = sha256()
    with path.open("rb") as file:
        while block := file.read(_BLOCK):
            digest.update(block)
    return digest.hexdigest()


def value_digest(value: object) -> str:
    """Return the SHA-256 of a JSON value; the order of keys does not matter."""
    text = json.dumps(value, sort_keys=True, ensure_ascii=True, allow_nan=False)
    return sha256(text.encode()).hexdigest()


def build_once(
    folder: Path,
    build: Callable[[Path], None],
    problem: Callable[[Path], str | None],
    progress: Progress = silent,
) -> Path:
    """Return `folder`, built aside and moved into place if it is not there or `problem` finds one.

    `build` fills an empty folder; `problem` says what is wrong with a finished one. A second
    process waits for the first and uses its result. A damaged folder is rebuilt with a warning.
    """
    try:
        if folder.is_dir() and problem(folder) is None:
            return folder
        folder.parent.mkdir(parents=True, exist_ok=True)
        with _held(folder, progress):
            _rebuild(folder, build, problem)
    except OSError as error:
        raise DataError(_what_failed(folder, error)) from error
    return folder


def _what_failed(folder: Path, error: OSError) -> str:
    named = Path(str(error.filename)) if error.filename else folder
    reason = error.strerror or str(error)
    if named.is_relative_to(folder.parent) or folder.is_relative_to(named):
        return (
            f"cannot write the cache folder {folder}: {reason}; free some space, or point "
            f"{_VARIABLE} to another folder"
        )
    return f"cannot read {named}: {reason}"


class _held:
    """The lock of a folder, with a word to the user if another process has it."""

    def __init__(self, folder: Path, progress: Progress) -> None:
        self._lock = FileLock(folder.with_name(f"{folder.name}.lock"))
        self._folder = folder
        self._progress = progress

    def __enter__(self) -> None:
        try:
            self._lock.acquire(timeout=0)
        except Timeout:
            self._progress(f"waiting for another process that prepares {self._folder.name}")
            self._lock.acquire()

    def __exit__(self, *_: object) -> None:
        self._lock.release()


def _rebuild(
    folder: Path, build: Callable[[Path], None], problem: Callable[[Path], str | None]
) -> None:
    """Build the folder under its lock, unless another process just did."""
    for stale in folder.parent.glob(f".building-{folder.name}-*"):
        shutil.rmtree(stale)
    if folder.is_dir():
        found = problem(folder)
        if found is None:
            return
        warnings.warn(f"the cache folder {folder} is rebuilt: {found}", stacklevel=4)
        shutil.rmtree(folder)
    aside = folder.with_name(f".building-{folder.name}-{uuid.uuid4().hex[:8]}")
    aside.mkdir()
    try:
        build(aside)
        aside.replace(folder)
    except BaseException:
        shutil.rmtree(aside, ignore_errors=True)
        raise
