"""A lock on a folder, so that two processes never write the same run or study."""

import contextlib
import time
from collections.abc import Iterator
from pathlib import Path

from posattn.errors import PosattnError
from posattn.training.durable import writing

try:
    import fcntl
except ImportError:  # not a POSIX system: there is no lock that dies with its process
    fcntl = None  # type: ignore[assignment]


@contextlib.contextmanager
def locked(folder: Path, what: str, *, wait: float = 0.0) -> Iterator[None]:
    """Hold the lock of `folder` within the block; raise if another process keeps it after `wait` s.

    The system frees the lock when its process ends, however it ends.
    """
    with writing(folder):
        folder.mkdir(parents=True, exist_ok=True)
    if fcntl is None:
        yield
        return
    with (folder / ".lock").open("a", encoding="utf-8") as file:
        deadline = time.monotonic() + wait
        while not _taken(file.fileno()):
            if time.monotonic() >= deadline:
                raise PosattnError(
                    f"another process is at work on {what} in {folder}; wait for it or end it"
                )
            time.sleep(0.1)
        yield


def _taken(handle: int) -> bool:
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True
