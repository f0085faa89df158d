"""The inside of a worker process: it takes jobs from a pipe until it is told to end or to stop."""

import _thread
import contextlib
import importlib
import os
import pickle
import queue
import signal
import sys
import threading
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from multiprocessing.connection import Connection
from typing import Any

from posattn.errors import PosattnError

Report = Callable[[Any], None]


@dataclass(frozen=True)
class Job:
    """A call of a module-level function: `function(argument, report)`."""

    key: str
    function: Callable[[Any, Report], Any]
    argument: Any


@dataclass(frozen=True)
class Failure:
    """An exception that ended a job, as text: it must cross process borders whatever it holds."""

    kind: str
    message: str
    trace: str
    for_user: bool

    def __str__(self) -> str:
        return self.message if self.for_user else f"{self.kind}: {self.message}"


class Message:
    """The first byte of what the pool sends: a job follows, stop what you do, or nothing is left."""

    JOB = b"J"
    STOP = b"S"
    END = b"E"


def serve(connection: Connection, threads: int, log: str, preload: tuple[str, ...] = ()) -> None:
    """Import `preload`, then run the jobs that arrive, with `threads` threads; print to `log`."""
    _leave_terminal(log)
    for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
        os.environ[name] = str(threads)
    os.environ["TOKENIZERS_PARALLELISM"] = "false"
    inbox: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
    threading.Thread(target=_listen, args=(connection, inbox), daemon=True).start()
    try:
        for module in preload:
            importlib.import_module(module)
        while (data := inbox.get()) is not None:
            connection.send_bytes(_answer(data, connection))
    except (KeyboardInterrupt, BrokenPipeError):
        print("stopped on request", file=sys.stderr)


def _listen(connection: Connection, inbox: "queue.SimpleQueue[bytes | None]") -> None:
    """Pass jobs on; turn a stop, or the death of the pool's process, into an interrupt."""
    while True:
        try:
            message = connection.recv_bytes()
        except (EOFError, OSError):
            message = Message.STOP
        if message.startswith(Message.JOB):
            inbox.put(message[1:])
            continue
        inbox.put(None)
        if message == Message.STOP:
            _interrupt_main_thread()
        return


def _answer(data: bytes, connection: Connection) -> bytes:
    def report(payload: Any) -> None:
        # nobody listens any more: then the listener is about to interrupt, and the job saves itself
        with contextlib.suppress(BrokenPipeError):
            connection.send(("progress", payload))

    try:
        job: Job = pickle.loads(data)
        connection.send(("started", None))
        return pickle.dumps(("returned", job.function(job.argument, report)))
    except Exception as error:  # whatever a job does wrong is its own affair, and is told
        trace = traceback.format_exc()
        print(trace, file=sys.stderr, flush=True)
        for_user = isinstance(error, PosattnError)
        return pickle.dumps(("raised", Failure(type(error).__name__, str(error), trace, for_user)))


def _interrupt_main_thread() -> None:
    """Raise what Ctrl-C raises in the main thread, and wake it if it sleeps in a system call."""
    main = threading.main_thread().ident
    if hasattr(signal, "pthread_kill") and main is not None:
        signal.pthread_kill(main, signal.SIGINT)
    else:
        _thread.interrupt_main()


def _leave_terminal(log: str) -> None:
    """Print to a file, and leave Ctrl-C to the pool, which stops its workers in good order."""
    if hasattr(os, "setpgrp"):
        os.setpgrp()
    file = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    sys.stdout.flush()
    sys.stderr.flush()
    os.dup2(file, 1)
    os.dup2(file, 2)
    os.close(file)
