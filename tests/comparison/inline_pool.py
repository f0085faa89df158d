"""A pool of workers without processes, for tests."""

from collections.abc import Callable, Iterable
from pathlib import Path

from posattn.comparison.pool import JobEvent, WorkerPool
from posattn.comparison.worker import Job


class InlinePool(WorkerPool):
    """Does the work of a pool in this process."""

    def __init__(self) -> None:
        super().__init__(1, threads=1, logs=Path())
        self.keys: list[str] = []

    def close(self) -> None:
        self.keys.append("closed")

    def start(self, number: int) -> None:
        pass

    def run(self, jobs: Iterable[Job], on_event: Callable[[JobEvent], None]) -> None:
        for job in jobs:
            self.keys.append(job.key)
            on_event(JobEvent(job.key, "started"))
            result = job.function(job.argument, lambda _: None)
            on_event(JobEvent(job.key, "returned", result))
