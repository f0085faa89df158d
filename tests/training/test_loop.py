import errno
import json
import os
import re
import signal
from collections.abc import Callable
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file

from posattn.errors import CheckpointError, DataError, IncompatibleParts, RecipeError, RunFailed
from posattn.training import checkpoint as checkpoint_module
from posattn.training.checkpoint import MARKER, list_checkpoints
from posattn.training.loop import train_run
from posattn.training.metrics import read_metrics
from posattn.training.run_folder import RunFolder
from posattn.training.run_inputs import Progress, TrainingJob
from tests.training.tiny_run import TinyBatches, TinyModel, tiny_job


class Stop(Exception):
    """Ends a run from outside, as a crash would."""


def stop_at(step: int, stage: str = "training") -> Callable[[Progress], None]:
    def tell(progress: Progress) -> None:
        if (progress.step, progress.stage) == (step, stage):
            raise Stop

    return tell


def interrupt_at(step: int, number: signal.Signals = signal.SIGINT) -> Callable[[Progress], None]:
    def tell(progress: Progress) -> None:
        if (progress.step, progress.stage) == (step, "training"):
            os.kill(os.getpid(), number)

    return tell


def reject(constant: str) -> None:
    raise AssertionError(f"{constant} is not JSON")


def strict(path: Path) -> Any:
    return json.loads(path.read_text(), parse_constant=reject)


def lines(run: Path) -> list[dict[str, Any]]:
    """Return the lines of a run without the times, which no resume repeats."""
    timed = ("seconds", "evaluation_seconds")
    return [
        {key: value for key, value in record.items() if key not in timed}
        for record in read_metrics(run / "metrics.jsonl")
    ]


def assert_same_run(first: Path, second: Path) -> None:
    assert lines(first) == lines(second)
    one, other = (load_file(run / "final" / "model.safetensors") for run in (first, second))
    assert one.keys() == other.keys()
    assert all(torch.equal(one[name], other[name]) for name in one)


def test_a_run_writes_all_its_files_in_strict_json(tmp_path: Path) -> None:
    run = tmp_path / "run"
    stages = []
    job = tiny_job(evaluate_every=6, checkpoint_every=5, keep_checkpoints=2)
    result = train_run(job, run, progress=lambda progress: stages.append(progress.stage))
    assert (result.state, result.step, result.folder) == ("finished", 12, run)
    assert strict(run / "status.json")["state"] == "finished"
    assert strict(run / "data.json") == {"corpus": "counting", "tokens": 160}
    environment = strict(run / "environment.json")
    assert environment["seeds"] == {"seed": 0, "data_seed": 0}
    assert (environment["precision"], environment["processes"]) == ("float32", 1)
    parameters = strict(run / "parameters.json")
    assert parameters["tensors"]["places.weight"]["group"] == "position"
    assert (run / "recipe.yaml").read_text() == job.recipe_text
    assert (run / "final" / "recipe.yaml").read_text() == job.recipe_text
    assert (run / "final" / "tokenizer.json").read_text() == "{}"
    assert [folder.name for folder in list_checkpoints(run / "checkpoints")] == [
        "step-00000010", "step-00000012",
    ]  # fmt: skip
    kinds = [(record["kind"], record["step"]) for record in lines(run)]
    assert kinds == [
        *[("train", step) for step in (2, 4, 6)], ("evaluation", 6),
        *[("train", step) for step in (8, 10, 12)], ("evaluation", 12),
    ]  # fmt: skip
    assert stages[0] == "parameters: decay 504, no_decay 66, position 96"
    assert stages[-1] == "finished"
    for path in run.rglob("*"):
        assert re.fullmatch(r"[A-Za-z0-9._-]+", path.name)
        assert path.suffix not in {".pt", ".bin", ".pkl", ".pth"}


def test_the_first_line_has_the_numbers_of_the_batches(tmp_path: Path) -> None:
    train_run(tiny_job(log_every=1, batch_size=3), tmp_path / "run")
    first = lines(tmp_path / "run")[0]
    batches = TinyBatches()
    batch = batches.batch(0, batches.order(0)[0])
    assert first["targets"] == batch.num_targets
    assert first["tokens"] == 24
    assert first["learning_rate"] == 0.05
    assert first["skipped"] == 0


@pytest.mark.parametrize("accumulation", [1, 2, 3])
@pytest.mark.parametrize("step", [1, 4, 5, 7, 11])
def test_resume_is_bit_exact_in_the_middle_of_epochs_and_groups(
    tmp_path: Path, accumulation: int, step: int
) -> None:
    settings: dict[str, Any] = {
        "accumulation": accumulation, "evaluate_every": 4, "log_every": 3, "warmup_steps": 2,
    }  # fmt: skip
    train_run(tiny_job(checkpoint_every=4, **settings), tmp_path / "straight")
    run = tmp_path / "broken"
    with pytest.raises(KeyboardInterrupt):
        train_run(tiny_job(checkpoint_every=4, **settings), run, progress=interrupt_at(step))
    status = strict(run / "status.json")
    assert (status["state"], status["step"]) == ("interrupted", step)
    torch.manual_seed(987)
    np.random.seed(987)
    result = train_run(tiny_job(checkpoint_every=4, **settings), run, resume=True)
    assert result.state == "finished"
    assert result.notes == (f"resumed from step-{step:08d}",)
    assert strict(run / "status.json")["resumed"] == 1
    assert_same_run(tmp_path / "straight", run)


def test_a_crash_loses_only_the_steps_since_the_last_checkpoint(tmp_path: Path) -> None:
    train_run(tiny_job(), tmp_path / "straight")
    run = tmp_path / "broken"
    with pytest.raises(Stop):
        train_run(tiny_job(checkpoint_every=4), run, progress=stop_at(7))
    assert strict(run / "status.json")["state"] == "failed"
    assert lines(run)[-1]["step"] == 6, "lines after the checkpoint are there"
    result = train_run(tiny_job(), run, resume=True)
    assert result.notes == ("resumed from step-00000004",)
    assert_same_run(tmp_path / "straight", run)


def test_a_run_stopped_at_each_epoch_end_sees_the_same_samples(tmp_path: Path) -> None:
    """T-10: 20 samples, batches of 3, 3 epochs; straight, and stopped after epochs 1 and 2."""
    settings: dict[str, Any] = {"steps": None, "epochs": 3, "batch_size": 3}
    straight, broken = TinyBatches(), TinyBatches()
    train_run(tiny_job(straight, **settings), tmp_path / "straight")
    run = tmp_path / "broken"
    for step in (7, 14):
        with pytest.raises(KeyboardInterrupt):
            train_run(tiny_job(broken, **settings), run, resume=True, progress=interrupt_at(step))
    train_run(tiny_job(broken, **settings), run, resume=True)
    assert broken.seen == straight.seen
    epochs = [straight.seen[start : start + 7] for start in (0, 7, 14)]
    assert all(sorted(chain.from_iterable(epoch)) == list(range(20)) for epoch in epochs)
    assert epochs[0] != epochs[1] != epochs[2] != epochs[0]
    assert strict(run / "status.json")["resumed"] == 2
    assert_same_run(tmp_path / "straight", run)


class Numpy(TinyModel):
    """A model that draws from NumPy's and Python's generators, as a plug-in may."""

    def forward(self, ids: torch.Tensor, **inputs: Any) -> Any:
        output = super().forward(ids, **inputs)
        if self.training:
            output.logits = output.logits + float(np.random.rand()) * torch.rand(30)
        return output


def test_noise_from_numpy_resumes_exactly_too(tmp_path: Path) -> None:
    def job() -> TrainingJob:
        plain = tiny_job()

        def build(vocab_size: int) -> torch.nn.Module:
            torch.manual_seed(0)
            return Numpy()

        return TrainingJob(
            plain.recipe_text, plain.config, plain.data, build, plain.position_parameters
        )

    train_run(job(), tmp_path / "straight")
    with pytest.raises(KeyboardInterrupt):
        train_run(job(), tmp_path / "broken", progress=interrupt_at(5))
    train_run(job(), tmp_path / "broken", resume=True)
    assert_same_run(tmp_path / "straight", tmp_path / "broken")


def test_a_finished_run_is_returned_at_once_and_not_overwritten(tmp_path: Path) -> None:
    run = tmp_path / "run"
    first = train_run(tiny_job(), run)

    def refuse(tell: Callable[[str], None]) -> Any:
        raise AssertionError("a finished run prepares no text")

    job = tiny_job()
    job = TrainingJob(job.recipe_text, job.config, refuse, job.build, job.position_parameters)
    again = train_run(job, run, resume=True)
    assert (again.state, again.step) == (first.state, first.step)
    before = {path: path.stat().st_mtime_ns for path in run.rglob("*")}
    with pytest.raises(RecipeError, match=r"already holds a run \(finished, step 12\).*--resume"):
        train_run(job, run)
    assert {path: path.stat().st_mtime_ns for path in run.rglob("*")} == before


def test_another_recipe_is_refused_with_the_keys_that_differ(tmp_path: Path) -> None:
    run = tmp_path / "run"
    train_run(tiny_job(), run)
    with pytest.raises(CheckpointError, match=r"train\.seed: 0 there, 3 now"):
        train_run(tiny_job(seed=3), run, resume=True)
    with pytest.raises(CheckpointError, match=r"encoder\.hidden_size: 12 there, 16 now"):
        train_run(tiny_job(width=16), run, resume=True)


def test_other_text_is_refused_at_a_resume(tmp_path: Path) -> None:
    run = tmp_path / "run"
    with pytest.raises(KeyboardInterrupt):
        train_run(tiny_job(), run, progress=interrupt_at(5))
    with pytest.raises(CheckpointError, match="the text is not the one"):
        train_run(tiny_job(TinyBatches(num_samples=21)), run, resume=True)


def test_harmless_keys_may_change_at_a_resume(tmp_path: Path) -> None:
    run = tmp_path / "run"
    with pytest.raises(KeyboardInterrupt):
        train_run(tiny_job(), run, progress=interrupt_at(5))
    result = train_run(tiny_job(checkpoint_every=1, threads=1), run, resume=True)
    assert result.state == "finished"
    assert any("train.threads was None and is 1 now" in note for note in result.notes)
    assert strict(run / "status.json")["notes"] == list(result.notes)


def test_resume_passes_over_torn_checkpoints_says_so_and_removes_them(tmp_path: Path) -> None:
    train_run(tiny_job(), tmp_path / "straight")
    run = tmp_path / "broken"
    with pytest.raises(Stop):
        train_run(tiny_job(checkpoint_every=2, keep_checkpoints=9), run, progress=stop_at(9))
    (run / "checkpoints" / "step-00000008" / MARKER).unlink()
    (run / "checkpoints" / "step-00000006" / "model.safetensors").write_bytes(b"")
    result = train_run(tiny_job(), run, resume=True)
    assert result.notes[0] == "resumed from step-00000004"
    assert result.notes[1].startswith("passed over step-00000008: COMPLETE is missing")
    assert result.notes[2].startswith("passed over step-00000006: model.safetensors (0 bytes)")
    assert_same_run(tmp_path / "straight", run)


def test_without_any_complete_checkpoint_resume_fails_and_says_what_to_do(tmp_path: Path) -> None:
    run = tmp_path / "run"
    with pytest.raises(Stop):
        train_run(tiny_job(checkpoint_every=2), run, progress=stop_at(5))
    for folder in list_checkpoints(run / "checkpoints"):
        (folder / MARKER).unlink()
    with pytest.raises(CheckpointError, match=r"no complete checkpoint .* to start anew") as caught:
        train_run(tiny_job(), run, resume=True)
    assert caught.value.exit_code != 0


def test_a_run_stopped_before_its_first_checkpoint_starts_anew(tmp_path: Path) -> None:
    train_run(tiny_job(), tmp_path / "straight")
    run = tmp_path / "broken"
    with pytest.raises(Stop):
        train_run(tiny_job(), run, progress=stop_at(5))
    result = train_run(tiny_job(), run, resume=True)
    assert result.notes == ("started anew: the run was stopped before its first checkpoint",)
    assert_same_run(tmp_path / "straight", run)


def full_disk(path: Path, content: bytes) -> None:
    path.write_bytes(content[: len(content) // 2])
    raise OSError(errno.ENOSPC, "No space left on device", str(path))


def test_a_full_disk_ends_the_run_with_its_last_checkpoint_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    train_run(tiny_job(), tmp_path / "straight")
    run = tmp_path / "run"

    def fill(progress: Progress) -> None:
        if (progress.step, progress.stage) == (8, "saving"):
            monkeypatch.setattr(checkpoint_module, "write_and_sync", full_disk)

    with pytest.raises(RunFailed, match="the disk is full"):
        train_run(tiny_job(checkpoint_every=4), run, progress=fill)
    monkeypatch.undo()
    status = strict(run / "status.json")
    assert status["state"] == "failed"
    assert "the disk is full" in status["reason"]
    assert not list(run.rglob(".tmp-*"))
    assert train_run(tiny_job(), run, resume=True).notes == ("resumed from step-00000004",)
    assert_same_run(tmp_path / "straight", run)


def test_if_not_even_the_status_can_be_written_the_error_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fill(progress: Progress) -> None:
        if (progress.step, progress.stage) == (4, "saving"):
            for module in ("checkpoint", "durable"):
                monkeypatch.setattr(f"posattn.training.{module}.write_and_sync", full_disk)

    with pytest.raises(RunFailed, match="the disk is full") as caught:
        train_run(tiny_job(checkpoint_every=4), tmp_path / "run", progress=fill)
    assert "status.json still says 'running'" in caught.value.__notes__[0]


def with_model(job: TrainingJob, change: Callable[[TinyModel], None]) -> TrainingJob:
    def build(vocab_size: int) -> torch.nn.Module:
        model = job.build(vocab_size)
        assert isinstance(model, TinyModel)
        change(model)
        return model

    return TrainingJob(job.recipe_text, job.config, job.data, build, job.position_parameters)


def test_a_loss_that_is_not_a_number_ends_the_run_as_diverged(tmp_path: Path) -> None:
    def poison(model: TinyModel) -> None:
        def spoil(module: torch.nn.Module, inputs: Any, output: torch.Tensor) -> torch.Tensor:
            model.calls = getattr(model, "calls", 0) + 1
            return output * float("nan") if model.calls == 5 else output

        model.inner.register_forward_hook(spoil)

    run = tmp_path / "BaNaNa"
    result = train_run(with_model(tiny_job(), poison), run)
    assert (result.state, result.step, result.reason) == (
        "diverged", 5, "the loss is not a number",
    )  # fmt: skip
    status = strict(run / "status.json")
    assert (status["state"], status["reason"]) == ("diverged", "the loss is not a number")
    for text in (run / "metrics.jsonl").read_text().splitlines():
        json.loads(text, parse_constant=reject)
    assert lines(run)[-1]["loss"] is None
    assert lines(run)[-1]["reason"] == "the loss is not a number"
    assert not (run / "final").exists()
    again = train_run(tiny_job(), run, resume=True)
    assert (again.state, again.reason) == ("diverged", "the loss is not a number")


def test_a_loss_far_above_the_first_ends_the_run_as_diverged(tmp_path: Path) -> None:
    job = tiny_job(steps=200, learning_rate=50.0, divergence_steps=5, schedule="constant")
    result = train_run(job, tmp_path / "run")
    assert result.state == "diverged"
    assert result.step < 200
    assert "times the first loss" in (result.reason or "")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_the_step_saves_and_goes_on_as_keyboard_interrupt(
    tmp_path: Path, number: signal.Signals
) -> None:
    run = tmp_path / "run"
    before = signal.getsignal(number)
    with pytest.raises(KeyboardInterrupt):
        train_run(tiny_job(), run, progress=interrupt_at(3, number))
    assert signal.getsignal(number) is before
    status = strict(run / "status.json")
    assert (status["state"], status["step"]) == ("interrupted", 3)
    assert status["reason"] == (
        "stopped by Ctrl-C" if number == signal.SIGINT else "stopped by SIGTERM"
    )
    assert [folder.name for folder in list_checkpoints(run / "checkpoints")] == ["step-00000003"]


def test_keyboard_interrupt_from_the_progress_function_saves_as_well(tmp_path: Path) -> None:
    def tell(progress: Progress) -> None:
        if progress.step == 3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        train_run(tiny_job(), tmp_path / "run", progress=tell)
    assert [f.name for f in list_checkpoints(tmp_path / "run" / "checkpoints")] == ["step-00000003"]


def test_a_failing_model_or_missing_text_leaves_no_folder(tmp_path: Path) -> None:
    job = tiny_job()

    def no_text(tell: Callable[[str], None]) -> Any:
        raise DataError("no such file")

    def no_model(vocab_size: int) -> torch.nn.Module:
        raise IncompatibleParts("head count")

    bad_data = TrainingJob(job.recipe_text, job.config, no_text, job.build, lambda model: ())
    bad_model = TrainingJob(job.recipe_text, job.config, job.data, no_model, lambda model: ())
    for bad, error in ((bad_data, DataError), (bad_model, IncompatibleParts)):
        with pytest.raises(error):
            train_run(bad, tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_a_run_name_that_some_system_refuses_is_refused_before_anything(tmp_path: Path) -> None:
    with pytest.raises(RecipeError, match="Windows"):
        train_run(tiny_job(), tmp_path / "CON")
    assert not (tmp_path / "CON").exists()


def test_initial_digests_and_batches_are_equal_for_equal_seeds_and_differ_otherwise(
    tmp_path: Path,
) -> None:
    for name, settings in (("a", {}), ("b", {}), ("c", {"seed": 1}), ("d", {"data_seed": 1})):
        train_run(tiny_job(**settings), tmp_path / name)

    def digests(name: str) -> tuple[list[str], list[str]]:
        tensors = strict(tmp_path / name / "parameters.json")["tensors"]
        batches = [record["batches"] for record in lines(tmp_path / name) if "batches" in record]
        return [tensor["digest"] for tensor in tensors.values()], batches

    assert digests("a") == digests("b")
    assert digests("a")[0] != digests("c")[0]
    assert digests("a")[1] != digests("c")[1]
    assert digests("a")[0] == digests("d")[0]
    assert digests("a")[1] != digests("d")[1]


def test_cuda_is_refused_where_there_is_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.raises(IncompatibleParts, match="use cpu or auto"):
        train_run(tiny_job(device="cuda"), tmp_path / "run")


def test_a_stream_that_ends_early_is_an_error(tmp_path: Path) -> None:
    class Short(TinyBatches):
        def from_position(self, epoch: int, index: int) -> Any:
            return iter([next(super().from_position(epoch, index))])

    with pytest.raises(DataError, match="ended after 0 of 1 micro-batches of step 2"):
        train_run(tiny_job(Short()), tmp_path / "run")
    assert strict(tmp_path / "run" / "status.json")["state"] == "failed"


def test_runs_of_different_precision_follow_each_other_in_one_process(tmp_path: Path) -> None:
    for precision in ("float32", "bf16", "float16", "float32"):
        folder = tmp_path / f"{precision}-{len(list(tmp_path.iterdir()))}"
        assert train_run(tiny_job(precision=precision), folder).state == "finished"


def test_what_computes_attention_is_said_once_and_recorded(tmp_path: Path) -> None:
    notes: list[str] = []

    def keep(progress: Progress) -> None:
        if progress.note:
            notes.append(progress.note)

    described = {"asked": "auto", "computed": ["sdpa"]}
    job = replace(tiny_job(), attention=lambda model: described)
    run = train_run(job, tmp_path / "run", progress=keep)
    assert notes == ["attention is computed by sdpa (asked: auto)"]
    assert strict(RunFolder(run.folder).attention) == described
