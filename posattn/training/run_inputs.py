"""What a training run is made of, without knowing recipes; and what it reports and returns."""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from torch import nn

from posattn.training.batches import Batch
from posattn.training.config import TrainConfig
from posattn.training.run_folder import State


@runtime_checkable
class TrainingBatches(Protocol):
    """Micro-batches in an order that depends on seed, epoch and index only."""

    @property
    def steps_per_epoch(self) -> int:
        """Micro-batches in one epoch."""

    def from_position(self, epoch: int, index: int) -> Iterator[Batch]:
        """Return the micro-batches from there on, over all later epochs, without end."""


@dataclass(frozen=True)
class RunData:
    """The text of a run, ready for training."""

    batches: TrainingBatches
    validation: Callable[[], Iterable[Batch]]
    vocab_size: int
    info: Mapping[str, Any]
    save_tokenizer: Callable[[Path], None]


@dataclass(frozen=True)
class TrainingJob:
    """A run to make. `data` and `build` are called only when there is something to train.

    `recipe_text` is the resolved recipe as YAML: it is saved, and a resume compares it. `build`
    gets the vocabulary size and returns the model with its initial weights. `position_parameters`
    names the parameters of the position mechanism. `data` gets a function to tell what it does.
    `attention` tells the backend that was asked for, and those that computed so far; empty if the model
    knows of none.
    """

    recipe_text: str
    config: TrainConfig
    data: Callable[[Callable[[str], None]], RunData]
    build: Callable[[int], nn.Module]
    position_parameters: Callable[[nn.Module], Collection[str]]
    attention: Callable[[nn.Module], Mapping[str, Any]] = lambda model: {}


@dataclass(frozen=True)
class Progress:
    """How far a run is; `loss` is that of the last step or evaluation, None before the first.

    `note` is something to be said once and left standing.
    """

    step: int
    steps: int
    loss: float | None
    tokens_per_second: float
    stage: str
    note: str | None = None


@dataclass(frozen=True)
class RunResult:
    """How a run ended: `finished`, or `diverged` with a reason; `notes` tell of a resume."""

    state: State
    step: int
    folder: Path
    reason: str | None = None
    notes: tuple[str, ...] = field(default=())
