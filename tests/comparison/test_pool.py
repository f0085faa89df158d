"""The pool: jobs come back, a dead worker marks its own job only, a stop is heard."""

import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from posattn.comparison.pool import JobEvent, WorkerPool
from posattn.comparison.worker import Failure, Job, Report
from posattn.errors import DataError, PosattnError


def double(number: int, report: Report) -> int:
    report({"step": 1})
    return 2 * number


def process_id(_: object, report: Report) -> int:
    return os.getpid()


def kill_self(_: object, report: Report) -> None:
    report("about to die")
    os.kill(os.getpid(), signal.SIGKILL)


def break_down(_: object, report: Report) -> None:
    raise DataError("the folder 'x' holds no text")


def bug(_: object, report: Report) -> None:
    raise ZeroDivisionError("division by zero")


def leave(_: object, report: Report) -> None:
    os._exit(7)


def save_when_stopped(folder: Path, report: Report) -> None:
    try:
        report("running")
        time.sleep(60)
    finally:
        (folder / "saved").write_text("yes")


@pytest.fixture
def pool(tmp_path: Path) -> Iterator[WorkerPool]:
    with WorkerPool(2, threads=1, logs=tmp_path / "workers") as pool:
        yield pool


def run(pool: WorkerPool, *jobs: Job) -> list[JobEvent]:
    events: list[JobEvent] = []
    pool.run(jobs, events.append)
    return events


def last(events: list[JobEvent], key: str) -> JobEvent:
    return [event for event in events if event.key == key][-1]


def test_every_job_reports_its_start_progress_and_result(pool: WorkerPool) -> None:
    events = run(pool, *(Job(str(n), double, n) for n in range(5)))
    for n in range(5):
        of_job = [(e.kind, e.payload) for e in events if e.key == str(n)]
        assert of_job == [("started", None), ("progress", {"step": 1}), ("returned", 2 * n)]


def test_workers_are_kept_for_many_jobs(pool: WorkerPool) -> None:
    events = run(pool, *(Job(str(n), process_id, None) for n in range(6)))
    assert len({e.payload for e in events if e.kind == "returned"}) <= 2


def test_fresh_gives_each_job_its_own_process(tmp_path: Path) -> None:
    with WorkerPool(1, threads=1, logs=tmp_path, start_method="forkserver", fresh=True) as pool:
        events = run(pool, *(Job(str(n), process_id, None) for n in range(3)))
    assert len({e.payload for e in events if e.kind == "returned"}) == 3


def test_a_killed_worker_marks_its_job_and_the_others_go_on(pool: WorkerPool) -> None:
    jobs = [Job("a", kill_self, None), Job("b", double, 1), Job("c", double, 2)]
    events = run(pool, *jobs, Job("d", leave, None))
    assert last(events, "a").kind == "killed"
    assert "signal 9, SIGKILL" in last(events, "a").payload
    assert last(events, "d").payload == "ended with code 7"
    assert [last(events, key).payload for key in "bc"] == [2, 4]
    assert [e.payload for e in events if e.key == "a" and e.kind == "progress"] == ["about to die"]


def test_an_exception_comes_back_as_text_and_the_worker_lives(pool: WorkerPool) -> None:
    events = run(pool, Job("a", break_down, None), Job("b", bug, None), Job("c", double, 4))
    user, fault = last(events, "a").payload, last(events, "b").payload
    assert isinstance(user, Failure)
    assert str(user) == "the folder 'x' holds no text"
    assert str(fault) == "ZeroDivisionError: division by zero"
    assert "test_pool.py" in fault.trace
    assert last(events, "c").payload == 8


def test_ctrl_c_lets_the_running_job_save_and_ends_the_workers(tmp_path: Path) -> None:
    def interrupt(event: JobEvent) -> None:
        if event.kind == "progress":
            raise KeyboardInterrupt

    with WorkerPool(1, threads=1, logs=tmp_path) as pool:
        with pytest.raises(KeyboardInterrupt):
            pool.run([Job("a", save_when_stopped, tmp_path)], interrupt)
        assert (tmp_path / "saved").exists()
        assert not pool._workers


def test_what_workers_print_goes_to_their_log(tmp_path: Path) -> None:
    with WorkerPool(1, threads=1, logs=tmp_path) as pool:
        run(pool, Job("a", bug, None))
    assert "ZeroDivisionError" in (tmp_path / "worker-0.log").read_text()


def test_a_pool_of_no_process_is_refused(tmp_path: Path) -> None:
    with pytest.raises(PosattnError, match="at least 1 process, not 0"):
        WorkerPool(0, threads=1, logs=tmp_path)


def test_an_unpicklable_result_fails_its_job_only(pool: WorkerPool) -> None:
    events = run(pool, Job("a", unpicklable, None), Job("b", double, 1))
    assert last(events, "a").kind == "raised"
    assert last(events, "b").payload == 2


def unpicklable(_: Any, report: Report) -> Any:
    return lambda: None


def test_workers_that_cannot_start_end_the_study_with_what_they_wrote(tmp_path: Path) -> None:
    pool = WorkerPool(1, threads=1, logs=tmp_path, preload=["no_such_module"])
    with pool, pytest.raises(PosattnError, match=r"(?s)ended with code 1 before.*no_such_module"):
        run(pool, Job("a", double, 1))


def test_a_worker_can_be_started_ahead_of_the_first_job(tmp_path: Path) -> None:
    with WorkerPool(2, threads=1, logs=tmp_path, preload=["json"]) as pool:
        pool.start(5)
        assert len(pool._workers) == 2
        assert last(run(pool, Job("a", double, 1)), "a").payload == 2


def test_a_worker_that_dies_while_it_waits_does_not_take_a_job_with_it(tmp_path: Path) -> None:
    with WorkerPool(1, threads=1, logs=tmp_path) as pool:
        process = last(run(pool, Job("a", process_id, None)), "a").payload
        os.kill(process, signal.SIGKILL)
        time.sleep(0.2)
        assert last(run(pool, Job("b", double, 3)), "b").payload == 6
