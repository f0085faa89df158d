"""T-7 and P-5, the run's half: a process killed at random moments, and the codes of its ends."""

import multiprocessing
import os
import random
import signal
import time
from multiprocessing.connection import Connection
from multiprocessing.context import ForkServerProcess
from pathlib import Path

from safetensors.torch import load_file
from torch import equal

from posattn.training.checkpoint import find_problem, newest_checkpoint
from posattn.training.metrics import read_metrics
from tests.training.tiny_run import run_and_tell, tiny_job, train_run

STEPS, WIDTH, KILLS = 120, 200, 20


def start(run: Path) -> tuple[ForkServerProcess, Connection]:
    context = multiprocessing.get_context("forkserver")
    # what a run imports at the latest when it makes its optimizer is there before the first fork
    context.set_forkserver_preload(["tests.training.tiny_run", "torch._dynamo"])
    ours, theirs = context.Pipe()
    process = context.Process(target=run_and_tell, args=(theirs, str(run), STEPS, WIDTH))
    process.start()
    theirs.close()
    return process, ours


def wait_for(connection: Connection, text: str) -> str:
    while text not in (said := str(connection.recv())):
        pass
    return said


def send(process: ForkServerProcess, number: signal.Signals) -> int | None:
    assert process.pid is not None
    os.kill(process.pid, number)
    process.join(60)
    return process.exitcode


def test_a_run_killed_at_random_moments_of_saving_loses_nothing_and_ends_the_same(
    tmp_path: Path,
) -> None:
    chance = random.Random(0)
    run, straight = tmp_path / "killed", tmp_path / "straight"
    before = 0
    for _ in range(KILLS):
        process, connection = start(run)
        for _ in range(chance.randint(1, 4)):
            wait_for(connection, "saving")
        time.sleep(chance.uniform(0.0, 0.03))
        assert send(process, signal.SIGKILL) == -signal.SIGKILL
        found, _ = newest_checkpoint(run / "checkpoints")
        if found is not None:
            assert find_problem(found.folder) is None
            assert found.step >= before, "a later checkpoint is never lost"
            before = found.step
    assert 0 < before < STEPS
    process, connection = start(run)
    assert f"step-{before:08d}" in wait_for(connection, "resumed from")
    assert wait_for(connection, "ended") == f"ended finished {STEPS}"
    process.join(60)
    assert process.exitcode == 0
    train_run(tiny_job(steps=STEPS, width=WIDTH, checkpoint_every=1, log_every=1), straight)
    one, other = (load_file(path / "final" / "model.safetensors") for path in (run, straight))
    assert all(equal(one[name], other[name]) for name in one)
    losses = [[r["loss"] for r in read_metrics(p / "metrics.jsonl")] for p in (run, straight)]
    assert losses[0] == losses[1]
    assert not list(run.rglob(".tmp-*"))


def test_sigterm_saves_and_the_process_ends_with_a_code_that_is_not_zero(tmp_path: Path) -> None:
    process, connection = start(tmp_path / "run")
    wait_for(connection, "saving")
    assert send(process, signal.SIGTERM) not in (0, None, -signal.SIGTERM)
    found, passed_over = newest_checkpoint(tmp_path / "run" / "checkpoints")
    assert found is not None
    assert passed_over == []
