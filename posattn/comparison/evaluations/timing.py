"""Timing: every arm's training step and inference, one after the other in each round."""

import gc
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch

from posattn.comparison.evaluations.subject import MASK_SEED
from posattn.comparison.worker import Report
from posattn.encoder.model import MaskedLanguageModel, position_parameters
from posattn.errors import DataError, IncompatibleParts
from posattn.recipe.build import build
from posattn.recipe.schema import Recipe
from posattn.training.batches import Batch, validation_batches
from posattn.training.determinism import reproducible
from posattn.training.evaluate import evaluating
from posattn.training.forward import run_batch
from posattn.training.lanes import LaneMemory
from posattn.training.learner import make_scaler
from posattn.training.loop import make_accelerator
from posattn.training.parameter_groups import group_parameters, make_optimizer
from posattn.training.schedule import make_schedule
from posattn.training.step import Stepper
from posattn.training.text.prepare import prepare

STAGES = ("training_step", "inference")


@dataclass(frozen=True)
class TimingTask:
    """Which arms to time, and how often; sizes are the recipes' unless given."""

    recipes: dict[str, Recipe]
    rounds: int
    warmup: int
    batch_size: int | None = None
    length: int | None = None
    stages: tuple[str, ...] = STAGES


class Contestant:
    """An untrained arm with a fixed batch, ready to take training steps and to infer."""

    def __init__(self, recipe: Recipe, batch_size: int | None, length: int | None) -> None:
        """Build the model and its optimizer, and read the batch."""
        corpus = prepare(recipe.data)
        self.config = recipe.train
        self.batch = first_batch(recipe, batch_size, length)
        self.accelerator = make_accelerator(recipe.train)
        self.device = self.accelerator.device
        self.model: MaskedLanguageModel = build(recipe, corpus.tokenizer.vocab_size).to(self.device)
        groups = group_parameters(self.model, position_parameters(self.model))
        self.stepper = Stepper(
            self.model,
            make_optimizer(self.model, groups, recipe.train),
            make_schedule(recipe.train, 1000),
            recipe.train,
            self.accelerator,
            make_scaler(recipe.train, self.device),
        )
        self._steps = 0

    def training_step(self) -> int:
        """Take one optimizer step; return its tokens."""
        batches = [self.batch] * self.config.accumulation
        self._steps += 1
        return self.stepper.step(batches, self._steps - 1, LaneMemory(self.model)).tokens

    def inference(self) -> int:
        """Predict the batch's masked tokens without gradients; return its tokens."""
        with evaluating(self.model), torch.inference_mode():
            memory = LaneMemory(self.model).before(self.batch)
            run_batch(self.model, self.batch, self.device, self.config.precision, memory)
        return int(self.batch.visible.sum())

    def timed(self, stage: str) -> tuple[float, int]:
        """Return seconds and tokens of one training step or one inference."""
        work: Callable[[], int] = getattr(self, stage)
        _wait_for(self.device)
        begun = time.perf_counter()
        tokens = work()
        _wait_for(self.device)
        return time.perf_counter() - begun, tokens


def time_arms(task: TimingTask, report: Report) -> dict[str, Any]:
    """Return conditions, every time that was measured, and why arms could not be timed."""
    first = next(iter(task.recipes.values()))
    with reproducible(first.train.threads):
        arms, refused = _contestants(task)
        rounds: list[dict[str, Any]] = []
        for number in range(-task.warmup, task.rounds):
            turn = number % len(arms) if arms else 0
            for arm in [*list(arms)[turn:], *list(arms)[:turn]]:
                gc.collect()
                for stage in task.stages:
                    seconds, tokens = arms[arm].timed(stage)
                    line = {"arm": arm, "round": number, "stage": stage}
                    rounds.append({**line, "seconds": seconds, "tokens": tokens})
            report(f"timing: round {number + task.warmup + 1} of {task.rounds + task.warmup}")
        conditions = _conditions(next(iter(arms.values()))) if arms else {}
    return {
        "conditions": conditions,
        "rounds": [line for line in rounds if line["round"] >= 0],
        "refused": refused,
    }


def first_batch(recipe: Recipe, batch_size: int | None, length: int | None) -> Batch:
    """Return one batch of validation text of the given size, by default the recipe's."""
    split = prepare(recipe.data).validation
    length = length or recipe.data.max_length
    batches = validation_batches(
        split,
        recipe.objective,
        length=length,
        batch_size=batch_size or recipe.train.batch_size,
        seed=MASK_SEED,
        limit_tokens=None,
    )
    for batch in batches:
        return batch
    raise DataError(f"the validation text fills no row of {length} tokens, so nothing can be timed")


def _contestants(task: TimingTask) -> tuple[dict[str, Contestant], dict[str, str]]:
    arms: dict[str, Contestant] = {}
    refused: dict[str, str] = {}
    for arm, recipe in task.recipes.items():
        limit = recipe.encoder.max_length()
        length = task.length or recipe.data.max_length
        try:
            if limit is not None and length > limit:
                raise IncompatibleParts(f"the arm takes at most {limit} tokens, not {length}")
            arms[arm] = Contestant(recipe, task.batch_size, task.length)
        except (IncompatibleParts, DataError) as error:
            refused[arm] = str(error)
    return arms, refused


def _conditions(arm: Contestant) -> dict[str, Any]:
    rows, length = arm.batch.ids.shape
    return {
        "threads": torch.get_num_threads(),
        "batch_size": rows,
        "accumulation": arm.config.accumulation,
        "length": length,
        "device": str(arm.device),
        "dtype": arm.config.precision,
        "order": "interleaved over arms, turning by one arm each round",
    }


def _wait_for(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize(device)
