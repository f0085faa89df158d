"""metrics.jsonl: one strict JSON object a line, cut back to the checkpoint when a run resumes."""

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import IO, Any

from posattn.training.durable import strict_json, write_bytes


class MetricsFile:
    """Appends lines to a metrics file; each line reaches the file at once."""

    def __init__(self, path: Path) -> None:
        """Open the file at its end; it is made if it is not there."""
        self._file: IO[bytes] = path.open("ab")

    def write(self, record: Mapping[str, Any]) -> None:
        """Append one line; numbers that are not finite become null, with a `reason`."""
        self._file.write((strict_json(record) + "\n").encode())
        self._file.flush()

    def sync(self) -> None:
        """Wait until the disk has all lines."""
        self._file.flush()
        os.fsync(self._file.fileno())

    def close(self) -> None:
        """Close the file."""
        self._file.close()


def read_metrics(path: Path, kind: str | None = None) -> list[dict[str, Any]]:
    """Return the lines of a metrics file, of one kind if given; a torn last line is left out."""
    if not path.exists():
        return []
    lines = path.read_bytes().split(b"\n")
    records = [json.loads(line) for line in lines[:-1] if line.strip()]
    return [record for record in records if kind is None or record.get("kind") == kind]


def cut_metrics(path: Path, step: int) -> int:
    """Drop the lines of later steps and a torn last line; return how many whole lines went."""
    records = read_metrics(path)
    kept = [record for record in records if record["step"] <= step]
    write_bytes(path, "".join(strict_json(record) + "\n" for record in kept).encode())
    return len(records) - len(kept)
