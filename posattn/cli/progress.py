"""Live progress on the standard error output: bars on a terminal, a line now and then elsewhere."""

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from posattn.cli.app import say

SECONDS_BETWEEN_LINES = 15.0


@contextmanager
def training_progress(name: str) -> Iterator[Callable[[Any], None]]:
    """Yield a function that draws the `Progress` of one run."""
    if not sys.stderr.isatty():
        yield _Lines(name)
        return
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeRemainingColumn,
    )

    bars = Progress(
        TextColumn("{task.fields[run]}", markup=False),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.description}", markup=False),
        TimeRemainingColumn(),
        console=Console(stderr=True),
    )
    with bars:
        task = bars.add_task("", total=None, run=name)

        def draw(progress: Any) -> None:
            if progress.note:
                bars.console.print(f"{name}: {progress.note}", markup=False, highlight=False)
            bars.update(
                task,
                completed=progress.step,
                total=progress.steps or None,
                description=describe(progress),
            )

        yield draw


def describe(progress: Any) -> str:
    """Return stage, loss and speed in a few words."""
    parts = [progress.stage]
    if progress.loss is not None:
        parts.append(f"loss {progress.loss:.3f}")
    if progress.tokens_per_second:
        parts.append(f"{progress.tokens_per_second:,.0f} tokens/s")
    return ", ".join(parts)


class _Lines:
    """Progress where nothing can be redrawn: a line for each stage, and one every few seconds."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._stage = ""
        self._last = 0.0

    def __call__(self, progress: Any) -> None:
        if progress.note:
            say(f"{self._name}: {progress.note}")
        now = time.monotonic()
        if progress.stage == self._stage and now - self._last < SECONDS_BETWEEN_LINES:
            return
        self._stage, self._last = progress.stage, now
        place = f"step {progress.step} of {progress.steps}, " if progress.steps else ""
        say(f"{self._name}: {place}{describe(progress)}")
