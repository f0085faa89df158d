"""A recipe means the same on any number of processes."""

import json
import multiprocessing
import socket
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file

from posattn.training.loop import train_run
from posattn.training.metrics import read_metrics
from tests.training.tiny_run import run_as_one_of, tiny_job

SETTINGS: dict[str, Any] = {"accumulation": 2, "steps": 6, "checkpoint_every": 3, "log_every": 1}


def run_together(out: Path, processes: int, settings: dict[str, Any]) -> list[int | None]:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["tests.training.tiny_run", "torch._dynamo"])
    started = [
        context.Process(target=run_as_one_of, args=(rank, processes, port, str(out), settings))
        for rank in range(processes)
    ]
    for process in started:
        process.start()
    for process in started:
        process.join(120)
    return [process.exitcode for process in started]


def test_two_processes_train_as_one_does(tmp_path: Path) -> None:
    train_run(tiny_job(**SETTINGS), tmp_path / "one")
    assert run_together(tmp_path / "two", 2, SETTINGS) == [0, 0]
    assert json.loads((tmp_path / "two" / "environment.json").read_text())["processes"] == 2
    one, two = (
        load_file(tmp_path / name / "final" / "model.safetensors") for name in ("one", "two")
    )
    for name, tensor in one.items():
        assert torch.allclose(tensor, two[name], atol=1e-5), name
    for ours, theirs in zip(
        *(read_metrics(tmp_path / name / "metrics.jsonl", "train") for name in ("one", "two")),
        strict=True,
    ):
        assert ours["batches"] == theirs["batches"]
        assert ours["targets"] == theirs["targets"]
        assert ours["loss"] == pytest.approx(theirs["loss"], abs=1e-5)
        assert ours["gradient_norm"] == pytest.approx(theirs["gradient_norm"], rel=1e-4)


def test_micro_batches_that_cannot_be_dealt_out_are_refused(tmp_path: Path) -> None:
    assert run_together(tmp_path / "run", 2, {**SETTINGS, "accumulation": 3}) == [1, 1]
    assert not (tmp_path / "run").exists()
