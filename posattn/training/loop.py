"""`train_run`: one plain loop from a run's parts to its folder, resumable at every step."""

import time
from collections.abc import Callable, Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import Any, NoReturn

import torch
from accelerate import Accelerator
from accelerate.state import AcceleratorState, PartialState

from posattn.errors import DataError, IncompatibleParts
from posattn.training.batches import Batch
from posattn.training.config import TrainConfig
from posattn.training.determinism import reproducible
from posattn.training.environment import describe_environment
from posattn.training.evaluate import evaluate
from posattn.training.interruption import Interruption
from posattn.training.learner import Learner
from posattn.training.opening import Opening, open_run
from posattn.training.record import Record
from posattn.training.run_folder import RunFolder, State, Status, check_out, check_run_name
from posattn.training.run_inputs import Progress, RunResult, TrainingJob
from posattn.training.weights import pack_weights

STATUS_SECONDS = 5.0
"""How old status.json may get while training goes on."""


def train_run(
    job: TrainingJob,
    out: str | Path,
    *,
    resume: bool = False,
    progress: Callable[[Progress], None] | None = None,
) -> RunResult:
    """Train into the folder `out` and return how it ended.

    A folder that holds a run is refused unless `resume`; then the newest complete checkpoint is
    taken up, and a run that has ended is returned at once. Divergence is a result, not an
    exception. Ctrl-C and SIGTERM end the present step, save, and raise `KeyboardInterrupt`. A full
    disk, and any other failure, is noted in status.json and raised; older checkpoints stay whole.
    """
    folder = RunFolder(Path(out).absolute())
    check_run_name(folder.path.name)
    check_out(folder.path)
    opening = open_run(folder, job.recipe_text, resume)
    if opening.result is not None:
        return opening.result
    with reproducible(job.config.threads), Interruption() as interruption:
        run = _Run(job, folder, opening, interruption, progress)
        run.prepare()
        return run.execute()


class _Run:
    """The state of one call of `train_run`."""

    def __init__(
        self,
        job: TrainingJob,
        folder: RunFolder,
        opening: Opening,
        interruption: Interruption,
        progress: Callable[[Progress], None] | None,
    ) -> None:
        self.job = job
        self.config = job.config
        self.folder = folder
        self.opening = opening
        self.interruption = interruption
        self.progress = progress
        self.accelerator = make_accelerator(job.config)
        self.record: Record | None = None
        self.loss: float | None = None
        self.saved_step = 0
        self.attention: Mapping[str, Any] = {}
        self.seconds_before = 0.0
        self.tokens_before = 0
        self.started = self.status_written = time.monotonic()

    def prepare(self) -> None:
        """Make data and model, then the folder: a bad recipe or missing text leaves no folder."""
        self.data = self.job.data(self._tell)
        self.learner = Learner(self.job, self.data, self.accelerator)
        if self.config.start is not None and self.opening.checkpoint is None:
            self.learner.begin(self.config.start, self.data.info.get("tokenizer_digest"))
        self.accelerator.wait_for_everyone()
        if self.accelerator.is_main_process:
            self.record = Record(
                self.folder, self.opening, self.job.recipe_text, self.data.info, self._environment()
            )
        self.accelerator.wait_for_everyone()

    def execute(self) -> RunResult:
        """Run from the opening to an end, which is written to status.json whatever it is."""
        try:
            self._start()
            problem = self._train()
            state: State = "finished"
            if problem is None:
                self._write_final()
            else:
                state = "diverged"
            self._write_status(state, problem)
            self._report(state if problem is None else f"diverged: {problem}")
            notes = self.opening.notes
            return RunResult(state, self.learner.step, self.folder.path, problem, notes)
        except KeyboardInterrupt as error:
            self._note_end(error, "interrupted", self.interruption.reason or "stopped by Ctrl-C")
            raise
        except BaseException as error:
            self._note_end(error, "failed", str(error) or type(error).__name__)
            raise
        finally:
            if self.record is not None:
                self.record.close()

    def _start(self) -> None:
        learner, checkpoint = self.learner, self.opening.checkpoint
        if checkpoint is None:
            described = learner.describe()
            if self.record is not None:
                self.record.parameters(described)
            counts = ", ".join(f"{name} {n:,}" for name, n in described["groups"].items())
            self._report(f"parameters: {counts}")
        else:
            learner.restore(checkpoint)
            self.saved_step = checkpoint.step
            self.seconds_before = float(checkpoint.state["seconds"])
            self._report("; ".join(self.opening.notes))
        self.tokens_before = learner.tally.tokens
        self.started = time.monotonic()
        self._write_status("running")

    def _train(self) -> str | None:
        """Take the steps that are left; return why the run has diverged, or None."""
        learner = self.learner
        position = learner.plan.position(learner.step)
        micro_batches = self.data.batches.from_position(*position)
        while not learner.is_done:
            epoch, _ = learner.plan.position(learner.step)
            batches = self._fetch(micro_batches)
            result, problem = learner.learn(batches)
            if result.targets:
                self.loss = result.loss_sum / result.targets
            self._note_attention()
            self._after_step(epoch, problem)
            if problem is not None:
                return problem
        return None

    def _after_step(self, epoch: int, problem: str | None) -> None:
        step, config, learner = self.learner.step, self.config, self.learner
        is_last = learner.is_done or problem is not None
        if is_last or step % config.log_every == 0:
            line = learner.tally.take_line(epoch, learner.stepper.skipped, self._seconds())
            self._write_line({**line, "reason": problem} if problem else line)
        if problem is not None:
            return
        if is_last or (config.evaluate_every and step % config.evaluate_every == 0):
            self._evaluate(epoch)
        if is_last or (config.checkpoint_every and step % config.checkpoint_every == 0):
            self._save()
        elif time.monotonic() - self.status_written > STATUS_SECONDS:
            self._write_status("running")
        self._report("training")
        if not is_last and self._must_stop():
            self._stop()

    def _fetch(self, micro_batches: Iterator[Batch]) -> list[Batch]:
        number = self.learner.plan.num_batches(self.learner.step)
        try:
            batches = list(islice(micro_batches, number))
        except Exception:
            if not self.interruption.requested:
                raise
            self._stop()  # Ctrl-C reached the worker processes that prepare batches as well
        if len(batches) < number:
            raise DataError(
                f"the batch stream ended after {len(batches)} of {number} micro-batches of step "
                f"{self.learner.step + 1}; it must go on without end"
            )
        if self.accelerator.num_processes > 1 and batches[0].lanes is not None:
            raise IncompatibleParts(
                "segment memory (data.order: streams) runs in one process only, not in "
                f"{self.accelerator.num_processes}; start it without torchrun, or set data.order "
                "to shuffled"
            )
        return batches

    def _evaluate(self, epoch: int) -> None:
        self._report("evaluating")
        if self.record is not None:
            begun = time.monotonic()
            learner, precision = self.learner, self.config.precision
            found = evaluate(learner.model, self.data.validation(), learner.device, precision)
            self._note_attention()
            self._write_line(
                {
                    "kind": "evaluation",
                    "step": learner.step,
                    "epoch": epoch,
                    "tokens": learner.tally.tokens,
                    "loss": found.loss,
                    "perplexity": found.perplexity,
                    "accuracy": found.accuracy,
                    "targets": found.targets,
                    "evaluation_tokens": found.tokens,
                    "evaluation_seconds": round(time.monotonic() - begun, 3),
                    "seconds": round(self._seconds(), 3),
                }
            )
        self.accelerator.wait_for_everyone()

    def _note_attention(self) -> None:
        """Record which backends computed attention, and say so, whenever there is another one."""
        described = self.job.attention(self.learner.model)
        if described == self.attention:
            return
        self.attention = described
        if self.record is not None:
            self.record.attention(described)
        computed = " and ".join(described["computed"])
        self._report(
            "training", f"attention is computed by {computed} (asked: {described['asked']})"
        )

    def _save(self) -> None:
        if self.record is not None and self.saved_step != self.learner.step:
            self._report("saving")
            learner = self.learner
            state = {**learner.state(), "seconds": self._seconds()}
            keep = self.config.keep_checkpoints
            self.record.checkpoint(learner.step, learner.files(), state, keep)
            self._write_status("running")
        self.saved_step = self.learner.step
        self.accelerator.wait_for_everyone()

    def _write_final(self) -> None:
        if self.record is not None:
            self._report("saving the model")
            self.record.final(pack_weights(self.learner.model), self.data.save_tokenizer)
        self.accelerator.wait_for_everyone()

    def _must_stop(self) -> bool:
        """Whether a stop was asked for, in this process or any other."""
        if self.accelerator.num_processes == 1:
            return self.interruption.requested
        flag = torch.tensor(float(self.interruption.requested), device=self.accelerator.device)
        return bool(self.accelerator.reduce(flag, reduction="sum").item())

    def _stop(self) -> NoReturn:
        self._save()
        raise KeyboardInterrupt(self.interruption.reason)

    def _write_line(self, line: dict[str, Any]) -> None:
        if self.record is not None:
            self.record.line(line)

    def _write_status(self, state: State, reason: str | None = None) -> None:
        tally, graphs = self.learner.tally, self.learner.graphs
        if self.record is not None:
            self.record.status(
                Status(
                    state=state,
                    step=tally.step,
                    tokens=tally.tokens,
                    targets=tally.targets,
                    skipped=self.learner.stepper.skipped,
                    reason=reason,
                    resumed=self.opening.resumed,
                    seconds=round(self._seconds(), 3),
                    notes=list(self.opening.notes),
                    graphs=None if graphs is None else graphs.count,
                )
            )
        self.status_written = time.monotonic()

    def _note_end(self, error: BaseException, state: State, reason: str) -> None:
        """Write how the run ended; if even that fails, say so with the error that is raised."""
        try:
            self._write_status(state, reason)
        except Exception as second:
            error.add_note(f"status.json still says 'running', because: {second}")

    def _seconds(self) -> float:
        return self.seconds_before + time.monotonic() - self.started

    def _tell(self, stage: str) -> None:
        """Report what goes on before there is a step."""
        if self.progress is not None and self.accelerator.is_main_process:
            self.progress(Progress(0, 0, None, 0.0, stage))

    def _report(self, stage: str, note: str | None = None) -> None:
        if self.progress is None or not self.accelerator.is_main_process:
            return
        learner = self.learner
        seconds = max(time.monotonic() - self.started, 1e-9)
        speed = (learner.tally.tokens - self.tokens_before) / seconds
        try:
            step, steps = learner.step, learner.plan.steps
            self.progress(Progress(step, steps, self.loss, speed, stage, note))
        except KeyboardInterrupt:
            self.interruption.request("stopped by Ctrl-C")

    def _environment(self) -> dict[str, Any]:
        seeds = {"seed": self.config.seed, "data_seed": self.config.order_seed}
        return {
            **describe_environment(self.accelerator.device, seeds),
            "precision": self.config.precision,
            "processes": self.accelerator.num_processes,
        }


def make_accelerator(config: TrainConfig) -> Accelerator:
    """Return the accelerator of a run; runs of one process do not inherit from the run before."""
    if config.device == "cuda" and not torch.cuda.is_available():
        raise IncompatibleParts(
            "train.device is cuda, but torch sees no CUDA device; use cpu or auto"
        )
    if PartialState._shared_state and PartialState().num_processes == 1:
        AcceleratorState._reset_state(reset_partial_state=True)
    accelerator = Accelerator(cpu=config.device == "cpu", mixed_precision="no")
    if config.accumulation % accelerator.num_processes:
        raise IncompatibleParts(
            f"train.accumulation is {config.accumulation} and cannot be dealt out to "
            f"{accelerator.num_processes} processes; make it a multiple of their number"
        )
    return accelerator
