"""`MetricsFollower`: the lines of a metrics.jsonl that another process is still writing."""

import json
from pathlib import Path
from typing import Any


class MetricsFollower:
    """Reads what is new in a metrics file: only whole lines, and all again where a run went back."""

    def __init__(self, path: Path) -> None:
        """Start at the beginning; the file need not be there yet."""
        self.path = path
        self.damaged = 0
        self.restarts = 0
        self._offset = 0
        self._file: tuple[int, int] | None = None

    def new_lines(self) -> list[dict[str, Any]]:
        """Return the lines since the last call; `restarts` grows where they begin at the start again.

        A resumed run puts a shorter file in the place of the old one. A line that is no JSON object
        is left out and counted in `damaged`.
        """
        try:
            with self.path.open("rb") as file:
                about = self.path.stat()
                if self._is_another((about.st_dev, about.st_ino), about.st_size):
                    self.restarts += 1
                    self._offset = 0
                file.seek(self._offset)
                whole, line_end, _torn = file.read().rpartition(b"\n")
        except FileNotFoundError:
            return []
        self._offset += len(whole) + len(line_end)
        records = [self._parsed(line) for line in whole.split(b"\n") if line.strip()]
        return [record for record in records if record is not None]

    def _is_another(self, file: tuple[int, int], size: int) -> bool:
        known, self._file = self._file, file
        return known is not None and (known != file or size < self._offset)

    def _parsed(self, line: bytes) -> dict[str, Any] | None:
        try:
            record = json.loads(line)
        except ValueError:
            record = None
        if isinstance(record, dict):
            return record
        self.damaged += 1
        return None
