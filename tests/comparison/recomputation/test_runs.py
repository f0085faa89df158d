"""Files of one run that do not agree with each other."""

import json

import numpy as np
import pytest

from posattn.comparison.recomputation.runs import disagreements_in
from posattn.comparison.study_files import read_study
from tests.comparison.study_folders import EIGHT_ARMS, write_json, write_study

RUN = "runs/learned/seed-0"


@pytest.fixture
def folder(tmp_path):
    diverged = frozenset({("learned", 1)})
    return write_study(tmp_path, EIGHT_ARMS[:1], (0, 1), diverged=diverged, speed=False)


def change(path, **values):
    write_json(path, json.loads(path.read_text(encoding="utf-8")) | values)


def found(folder):
    runs = read_study(folder).runs
    return [text for run in runs for text in disagreements_in(run, folder)]


def test_runs_as_trained_agree_with_themselves_and_so_does_one_that_diverged(folder):
    assert found(folder) == []


def test_scores_must_be_totals_over_totals_of_the_samples(folder):
    path = folder / RUN / "evaluations.json"
    stored = json.loads(path.read_text())["validation"]
    change(path, validation=stored | {"loss": 9.5, "accuracy": 0.25, "targets": 1})
    targets, loss, accuracy = found(folder)
    assert targets == f"{RUN}/evaluations.json: validation.targets is 1, examples.npz has 1200"
    assert loss.startswith(f"{RUN}/evaluations.json: validation.loss is 9.5, examples.npz gives ")
    assert "validation.accuracy is 0.25" in accuracy


def test_samples_decide_and_not_their_batches(folder):
    """S-2: 1 and 9 targets of losses 2.0 and 1.0 are 1.1, whatever the batches were."""
    np.savez(
        folder / RUN / "examples.npz",
        sample_ids=[0, 1],
        loss_sum=[2.0, 9.0],
        targets=[1, 9],
        correct=[0, 5],
    )
    path = folder / RUN / "evaluations.json"
    change(path, validation={"loss": 1.1, "accuracy": 0.5, "targets": 10})
    assert found(folder) == []
    change(path, validation={"loss": 1.5, "accuracy": 0.5, "targets": 10})
    assert found(folder) == [
        f"{RUN}/evaluations.json: validation.loss is 1.5, examples.npz gives 1.1"
    ]


def test_a_run_ends_where_it_logged_its_last_line(folder):
    change(folder / RUN / "status.json", step=601, tokens=7)
    assert found(folder) == [
        f"{RUN}/status.json: step is 601, the last line of metrics.jsonl has 600",
        f"{RUN}/status.json: tokens is 7, the last line of metrics.jsonl has {600 * 2048}",
    ]


def test_samples_that_are_gone_and_damaged_checkpoints_are_found(folder):
    (folder / RUN / "examples.npz").unlink()
    (folder / RUN / "checkpoints/step-00000600").mkdir(parents=True)
    missing, damaged = found(folder)
    assert missing.startswith(f"{RUN}/examples.npz: missing, so the scores cannot be recomputed")
    assert damaged.startswith(f"{RUN}/checkpoints: ")
