"""Files that are either whole or not there, and strict JSON.

Every write goes to a temporary name in the same folder, is flushed to the disk, and is then put in
place with `Path.replace`, which replaces on every system.
"""

import errno
import json
import math
import os
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from posattn.errors import RunFailed

DISK_ERRORS = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS, errno.EACCES, errno.EPERM)
TEMPORARY = ".tmp-"


def write_bytes(path: Path, content: bytes, *, synced: bool = True) -> None:
    """Put `content` at `path` at once: a reader sees the old file or the new one, never a part.

    Without `synced` the disk may get it later: for what can be made again, such as a figure.
    """
    temporary = path.with_name(f"{TEMPORARY}{os.getpid()}-{path.name}")
    try:
        if synced:
            write_and_sync(temporary, content)
        else:
            temporary.write_bytes(content)
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    if synced:
        sync_folder(path.parent)


def write_and_sync(path: Path, content: bytes) -> None:
    """Write a file and wait until the disk has it."""
    with path.open("wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())


def sync_folder(folder: Path) -> None:
    """Wait until the disk has the folder's entries, where the system can do that for folders."""
    if os.name != "posix":
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def replace_folder(source: Path, target: Path) -> None:
    """Put the folder `source` in the place of `target`, of which an older version may exist."""
    if target.exists():
        old = target.with_name(f"{TEMPORARY}{os.getpid()}-old-{target.name}")
        shutil.rmtree(old, ignore_errors=True)
        target.replace(old)
        source.replace(target)
        shutil.rmtree(old)
    else:
        source.replace(target)
    sync_folder(target.parent)


def remove_temporary(folder: Path) -> None:
    """Delete what an ended process left unfinished in `folder`."""
    for path in folder.glob(f"{TEMPORARY}*"):
        if path.is_dir():
            shutil.rmtree(path)
        else:
            path.unlink()


def write_failure(error: OSError, target: Path, size: int | None = None) -> RunFailed:
    """Return the error that tells the user why `target` could not be written and what to do."""
    needed = "" if size is None else f" ({size / 2**20:.1f} MiB)"
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        cause, remedy = "the disk is full", "Make room"
    else:
        cause, remedy = error.strerror or str(error), "Mend the cause"
    return RunFailed(
        f"cannot write {target}{needed}: {cause}; what was saved before is intact. "
        f"{remedy}, then run the same command again (posattn train: with --resume)"
    )


@contextmanager
def writing(target: Path) -> Iterator[None]:
    """Turn the system's refusal to write `target` into a `RunFailed` for the user."""
    try:
        yield
    except OSError as error:
        raise write_failure(error, target) from error


@contextmanager
def on_disk(folder: Path) -> Iterator[None]:
    """Turn a full or read-only disk, met anywhere in work on `folder`, into a `RunFailed`."""
    try:
        yield
    except OSError as error:
        if error.errno not in DISK_ERRORS:
            raise
        raise write_failure(error, Path(error.filename or folder)) from error


def strict_record(record: Mapping[str, Any]) -> dict[str, Any]:
    """Return the record with null for numbers that are not finite; `reason` names them."""
    troubles: list[str] = []
    clean = {key: _strict(value, key, troubles) for key, value in record.items()}
    if troubles and not clean.get("reason"):
        clean["reason"] = "; ".join(troubles)
    return clean


def strict_json(record: Mapping[str, Any], indent: int | None = None) -> str:
    """Return JSON that every parser reads: no NaN, no Infinity."""
    return json.dumps(strict_record(record), allow_nan=False, ensure_ascii=False, indent=indent)


def write_json(path: Path, record: Mapping[str, Any]) -> None:
    """Put a JSON object at `path` at once."""
    write_bytes(path, (strict_json(record, indent=1) + "\n").encode())


def read_json(path: Path) -> dict[str, Any]:
    """Return the JSON object at `path`."""
    content = json.loads(path.read_text(encoding="utf-8"))
    if not isinstance(content, dict):
        raise ValueError(f"{path} holds no JSON object")
    return content


def _strict(value: Any, name: str, troubles: list[str]) -> Any:
    if isinstance(value, Mapping):
        return {str(key): _strict(item, f"{name}.{key}", troubles) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_strict(item, f"{name}[{i}]", troubles) for i, item in enumerate(value)]
    if isinstance(value, float) and not math.isfinite(value):
        troubles.append(f"{name} is {'not a number' if math.isnan(value) else 'infinite'}")
        return None
    return value
