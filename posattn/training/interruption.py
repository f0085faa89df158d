"""Ctrl-C and SIGTERM as a request to stop after the present step."""

import signal
import threading
from types import FrameType, TracebackType
from typing import Any


class Interruption:
    """In the block the first Ctrl-C or SIGTERM only sets `requested`; a second one stops at once.

    In a thread other than the main one no signal arrives, and nothing is changed.
    """

    def __init__(self) -> None:
        """Make it without touching any signal yet."""
        self.requested = False
        self.reason = ""
        self._before: dict[signal.Signals, Any] = {}

    def __enter__(self) -> "Interruption":
        if threading.current_thread() is threading.main_thread():
            for number in (signal.SIGINT, signal.SIGTERM):
                self._before[number] = signal.signal(number, self._on_signal)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def request(self, reason: str) -> None:
        """Ask for a stop after the present step."""
        self.requested = True
        self.reason = self.reason or reason

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        if self.requested:
            raise KeyboardInterrupt
        self.request("stopped by Ctrl-C" if number == signal.SIGINT else "stopped by SIGTERM")
