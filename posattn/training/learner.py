"""All that a checkpoint holds: model, optimizer, schedule position, segment memory, counts."""

from collections.abc import Sequence
from typing import Any

import torch
from accelerate import Accelerator
from torch import nn

from posattn.training.batches import Batch
from posattn.training.checkpoint import Checkpoint
from posattn.training.compiling import compile_model
from posattn.training.config import StartConfig, TrainConfig
from posattn.training.determinism import seed_everything
from posattn.training.lanes import LaneMemory
from posattn.training.optimizer_state import load_optimizer, optimizer_tensors
from posattn.training.parameter_groups import describe_parameters, group_parameters, make_optimizer
from posattn.training.run_inputs import RunData, TrainingJob
from posattn.training.schedule import make_schedule, plan_steps
from posattn.training.start import StartRecord, begin_from
from posattn.training.step import Scaler, Stepper, StepResult
from posattn.training.tally import Tally
from posattn.training.weights import load_weights, pack_tensors, pack_weights, read_tensors


class Learner:
    """A model in training; `save` and `restore` are exact inverses."""

    def __init__(self, job: TrainingJob, data: RunData, accelerator: Accelerator) -> None:
        """Build the model with its initial weights, and everything around it, at step 0."""
        config = job.config
        self.device = accelerator.device
        self.plan = plan_steps(config, data.batches.steps_per_epoch)
        seed_everything(config.seed, "build")
        self.model: nn.Module = job.build(data.vocab_size).to(self.device)
        self.graphs = compile_model(self.model, self.device) if config.compile else None
        self.position = set(job.position_parameters(self.model))
        self.groups = group_parameters(self.model, self.position)
        self.optimizer = make_optimizer(self.model, self.groups, config)
        schedule = make_schedule(config, self.plan.steps)
        scaler = make_scaler(config, self.device)
        self.stepper = Stepper(self.model, self.optimizer, schedule, config, accelerator, scaler)
        self.memory = LaneMemory(self.model)
        self.tally = Tally(config)
        self.started_from: StartRecord | None = None

    @property
    def step(self) -> int:
        """Steps done."""
        return self.tally.step

    @property
    def is_done(self) -> bool:
        """Whether all steps of the plan are done."""
        return self.step >= self.plan.steps

    def begin(self, start: StartConfig, tokenizer_digest: str | None) -> None:
        """Take over the weights of a folder, before the first step."""
        self.started_from = begin_from(self.model, start, tokenizer_digest)

    def learn(self, batches: Sequence[Batch]) -> tuple[StepResult, str | None]:
        """Take the next step; return it, and why the run has diverged or None."""
        if self.plan.position(self.step)[1] == 0:
            self.memory = self.memory.emptied()
        result = self.stepper.step(batches, self.step, self.memory)
        self.memory = result.memory
        return result, self.tally.add(result, batches)

    def describe(self) -> dict[str, Any]:
        """Return the contents of parameters.json; digests are of the weights as they are now."""
        described = describe_parameters(self.model, self.groups, self.position)
        start = self.started_from
        return described if start is None else {**described, "start": start.described()}

    def files(self) -> dict[str, bytes]:
        """Return the tensors of a checkpoint as files by name."""
        files = {
            "model.safetensors": pack_weights(self.model),
            "optimizer.safetensors": pack_tensors(optimizer_tensors(self.optimizer)),
        }
        memory = self.memory.tensors()
        return {**files, "memory.safetensors": pack_tensors(memory)} if memory else files

    def state(self) -> dict[str, Any]:
        """Return the rest of a checkpoint as plain data."""
        epoch, index = self.plan.position(self.step)
        return {
            "format": 1,
            "step": self.step,
            "epoch": epoch,
            "index": index,
            "tally": self.tally.state(),
            "stepper": self.stepper.state(),
        }

    def restore(self, checkpoint: Checkpoint) -> None:
        """Become what `files` and `state` were taken from."""
        folder = checkpoint.folder
        load_weights(self.model, folder / "model.safetensors")
        load_optimizer(self.optimizer, read_tensors(folder / "optimizer.safetensors"))
        memory = folder / "memory.safetensors"
        tensors = read_tensors(memory) if memory.exists() else {}
        self.memory = self.memory.restored(tensors, self.device)
        self.stepper.load_state(checkpoint.state["stepper"])
        self.tally.load_state(checkpoint.state["tally"])


def make_scaler(config: TrainConfig, device: torch.device) -> Scaler | None:
    """Return the loss scaler that float16 needs; the other precisions need none."""
    return torch.amp.GradScaler(device.type) if config.precision == "float16" else None
