"""A pool of long-lived worker processes: a worker that dies marks its job, and the others go on."""

import contextlib
import multiprocessing
import pickle
import signal
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from multiprocessing.context import BaseContext
from multiprocessing.process import BaseProcess
from pathlib import Path
from types import TracebackType
from typing import Any, Literal

from posattn.comparison.worker import Job, Message, serve
from posattn.errors import PosattnError

STOP_SECONDS = 60.0
"""How long a worker has to write its checkpoint after Ctrl-C before it is killed."""

StartMethod = Literal["spawn", "forkserver"]


@dataclass(frozen=True)
class JobEvent:
    """What happened to the job `key`.

    `payload` is what the job reported (`progress`), its result (`returned`), a `Failure`
    (`raised`) or the reason in words (`killed`).
    """

    key: str
    kind: Literal["started", "progress", "returned", "raised", "killed"]
    payload: Any = None


@dataclass
class _Worker:
    process: BaseProcess
    connection: Connection
    log: Path
    job: Job | None = None
    begun: bool = False


class WorkerPool:
    """`size` processes that take jobs one after the other.

    `start_method` is `spawn` (works everywhere) or `forkserver` (a child that shares the memory of
    a process which has imported `preload`). With `fresh` each job gets a process of its own.
    """

    def __init__(
        self,
        size: int,
        *,
        threads: int,
        logs: Path,
        start_method: StartMethod = "spawn",
        preload: Iterable[str] = (),
        fresh: bool = False,
    ) -> None:
        """Make a pool; processes start with the first jobs, and write what they print to `logs`."""
        if size < 1:
            raise PosattnError(f"a worker pool needs at least 1 process, not {size}")
        self.size = size
        self.threads = threads
        self.logs = logs
        self.fresh = fresh
        self._context: BaseContext = multiprocessing.get_context(start_method)
        self._preload = tuple(preload)
        if start_method == "forkserver":
            self._context.set_forkserver_preload(list(self._preload))
        self._workers: list[_Worker] = []
        self._started = 0
        self._false_starts = 0

    def __enter__(self) -> "WorkerPool":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def start(self, number: int) -> None:
        """Start `number` workers ahead of the first job, so that they import meanwhile."""
        while len(self._workers) < min(number, self.size):
            self._workers.append(self._start())

    def run(self, jobs: Iterable[Job], on_event: Callable[[JobEvent], None]) -> None:
        """Run all jobs and tell `on_event` what happens; return when each has ended somehow.

        On an exception in this process (Ctrl-C above all) the workers are told to stop, have
        `STOP_SECONDS` to save what they do, and the exception goes on.
        """
        waiting = deque(jobs)
        try:
            while waiting or any(worker.job is not None for worker in self._workers):
                self._hand_out(waiting)
                for event in self._events(waiting):
                    on_event(event)
        except BaseException:
            self.stop()
            raise

    def stop(self) -> None:
        """Interrupt what runs, wait until it is saved, and end all workers."""
        for worker in self._workers:
            _tell(worker, Message.STOP)
        try:
            self._join(STOP_SECONDS)
        finally:
            self._kill()

    def close(self) -> None:
        """End all workers, which have nothing to do any more."""
        for worker in self._workers:
            _tell(worker, Message.END)
        try:
            self._join(5.0)
        finally:
            self._kill()

    def _hand_out(self, waiting: deque[Job]) -> None:
        for worker in [w for w in self._workers if w.job is None]:
            if waiting:
                self._give(worker, waiting.popleft())
        while waiting and len(self._workers) < self.size:
            worker = self._start()
            self._workers.append(worker)
            self._give(worker, waiting.popleft())

    def _start(self) -> _Worker:
        self.logs.mkdir(parents=True, exist_ok=True)
        log = self.logs / f"worker-{self._started}.log"
        self._started += 1
        ours, theirs = self._context.Pipe(duplex=True)
        process: BaseProcess = self._context.Process(  # type: ignore[attr-defined]
            target=serve, args=(theirs, self.threads, str(log), self._preload), daemon=False
        )
        process.start()
        theirs.close()
        return _Worker(process, ours, log)

    def _give(self, worker: _Worker, job: Job) -> None:
        worker.job, worker.begun = job, False
        data = pickle.dumps(job)
        # if it has died, its sentinel tells, and the job is given to another
        with contextlib.suppress(OSError):
            worker.connection.send_bytes(Message.JOB + data)

    def _events(self, waiting: deque[Job]) -> Iterator[JobEvent]:
        """Yield what the workers say within half a second."""
        busy = [worker for worker in self._workers if worker.job is not None]
        handles = [w.connection for w in busy] + [w.process.sentinel for w in busy]
        ready = wait(handles, timeout=0.5)
        for worker in busy:
            if worker.connection in ready or worker.process.sentinel in ready:
                yield from self._read(worker, waiting)

    def _read(self, worker: _Worker, waiting: deque[Job]) -> Iterator[JobEvent]:
        try:
            while worker.job is not None and worker.connection.poll():
                yield self._event(worker, worker.connection.recv())
        except (EOFError, OSError, pickle.UnpicklingError):  # it died, perhaps amid a message
            worker.process.join(5.0)
            if worker.job is not None:
                yield from self._died(worker, waiting)

    def _event(self, worker: _Worker, message: tuple[Any, Any]) -> JobEvent:
        assert worker.job is not None
        kind, payload = message
        key = worker.job.key
        if kind == "started":
            worker.begun, self._false_starts = True, 0
        if kind in ("returned", "raised"):
            worker.job = None
            if self.fresh:
                self._retire(worker)
        return JobEvent(key, kind, payload)

    def _died(self, worker: _Worker, waiting: deque[Job]) -> Iterator[JobEvent]:
        job = worker.job
        assert job is not None
        reason = _why(worker.process.exitcode)
        self._drop(worker)
        if worker.begun:
            yield JobEvent(job.key, "killed", reason)
            return
        self._false_starts += 1
        if self._false_starts > 2:
            raise PosattnError(
                f"worker processes {reason} before they could start; what the last one wrote "
                f"({worker.log}):\n{_tail(worker.log)}"
            )
        waiting.appendleft(job)

    def _retire(self, worker: _Worker) -> None:
        _tell(worker, Message.END)
        worker.process.join(5.0)
        self._drop(worker)

    def _drop(self, worker: _Worker) -> None:
        worker.connection.close()
        if worker.process.is_alive():
            worker.process.kill()
            worker.process.join(5.0)
        self._workers.remove(worker)

    def _join(self, seconds: float) -> None:
        """Wait for the end of all workers, reading on so that none waits for us to listen."""
        remaining = seconds
        while remaining > 0 and any(w.process.is_alive() for w in self._workers):
            for worker in self._workers:
                _drain(worker)
                worker.process.join(0.05)
                remaining -= 0.05

    def _kill(self) -> None:
        for worker in list(self._workers):
            self._drop(worker)


def _tell(worker: _Worker, message: bytes) -> None:
    try:
        worker.connection.send_bytes(message)
    except OSError:
        worker.process.join(0.05)  # it is gone already, which is what we want of it


def _drain(worker: _Worker) -> None:
    try:
        while worker.connection.poll():
            worker.connection.recv_bytes()
    except (EOFError, OSError):
        worker.process.join(0.05)  # the other end is closed: nothing more will come


def _why(code: int | None) -> str:
    """Say in words how a process ended."""
    if code is None or code >= 0:
        return f"ended with code {code}"
    try:
        name = signal.Signals(-code).name
    except ValueError:
        name = "an unknown signal"
    hint = " (often the system's answer to too little memory)" if name == "SIGKILL" else ""
    return f"was killed by signal {-code}, {name}{hint}"


def _tail(path: Path, lines: int = 15) -> str:
    if not path.exists():
        return "(nothing)"
    return "\n".join(path.read_text(encoding="utf-8", errors="replace").splitlines()[-lines:])
