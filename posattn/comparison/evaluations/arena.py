"""Where all arms of a study are measured together: processes to do it in, and a folder to write to."""

import multiprocessing
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from posattn.comparison.pool import JobEvent, StartMethod, WorkerPool
from posattn.comparison.worker import Job, Report
from posattn.errors import RunFailed
from posattn.recipe.schema import Recipe


@dataclass(frozen=True)
class Arena:
    """The arms by name, as they are before training, and what a measurement may use."""

    out: Path
    recipes: Mapping[str, Recipe]
    threads: int
    jobs: int
    pool: WorkerPool
    say: Callable[[str], None]

    def alone(self, function: Callable[[Any, Report], Any], argument: Any, what: str) -> Any:
        """Return `function(argument, report)`, run in one process while the others do nothing."""
        return self._results(self.pool, {what: argument}, function)[what]

    def apart(
        self,
        function: Callable[[Any, Report], Any],
        arguments: Mapping[str, Any],
        preload: tuple[str, ...],
    ) -> dict[str, Any]:
        """Return the results by name, each from a fresh process that has imported `preload`."""
        with WorkerPool(
            self.jobs,
            threads=self.threads,
            logs=self.pool.logs / "fresh",
            start_method=_cheapest_start(),
            preload=preload,
            fresh=True,
        ) as pool:
            return self._results(pool, arguments, function)

    def _results(
        self,
        pool: WorkerPool,
        arguments: Mapping[str, Any],
        function: Callable[[Any, Report], Any],
    ) -> dict[str, Any]:
        results: dict[str, Any] = {}

        def note(event: JobEvent) -> None:
            if event.kind == "progress":
                self.say(str(event.payload))
            elif event.kind == "returned":
                results[event.key] = event.payload
            elif event.kind in ("raised", "killed"):
                raise RunFailed(f"measuring {event.key} failed: {event.payload}")

        pool.run([Job(key, function, argument) for key, argument in arguments.items()], note)
        return results


def _cheapest_start() -> StartMethod:
    """Return how a fresh process starts: from one that has imported all, where the system can."""
    return "forkserver" if "forkserver" in multiprocessing.get_all_start_methods() else "spawn"
