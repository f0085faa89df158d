"""A tiny model and tiny batches with the real interfaces, and a run for tests that kill it."""

import os
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from types import SimpleNamespace
from typing import Any

import torch
from torch import Tensor, nn

from posattn.training.batches import Batch
from posattn.training.config import TrainConfig
from posattn.training.determinism import derive_seed
from posattn.training.loop import train_run
from posattn.training.run_inputs import RunData, TrainingJob

VOCABULARY = 30
LENGTH = 8


class TinyModel(nn.Module):
    """Token and position embeddings, dropout, one tied readout."""

    def __init__(self, width: int = 12, dropout: float = 0.2) -> None:
        super().__init__()
        self.tokens = nn.Embedding(VOCABULARY, width)
        self.places = nn.Embedding(LENGTH, width)
        self.inner = nn.Linear(width, width)
        self.norm = nn.LayerNorm(width)
        self.dropout = nn.Dropout(dropout)
        self.readout = nn.Linear(width, VOCABULARY)
        self.readout.weight = self.tokens.weight

    def forward(self, ids: Tensor, *, selected: Tensor, **unused: Any) -> SimpleNamespace:
        places = torch.arange(ids.shape[1], device=ids.device)
        hidden = self.tokens(ids) + self.places(places)
        hidden = self.norm(hidden + self.dropout(torch.tanh(self.inner(hidden))))
        around = hidden.mean(dim=1, keepdim=True)
        return SimpleNamespace(logits=self.readout((hidden + around)[selected]), memory=None)


def tiny_positions(model: nn.Module) -> Collection[str]:
    return {name for name, _ in model.named_parameters() if name.startswith("places.")}


def make_batch(ids: Tensor, selected: Tensor, sample_ids: Tensor | None = None) -> Batch:
    return Batch(
        ids=ids.masked_fill(selected, 1),
        targets=ids.masked_fill(~selected, -100),
        visible=torch.ones_like(selected),
        documents=None,
        segments=None,
        sample_ids=torch.arange(len(ids)) if sample_ids is None else sample_ids,
        lanes=None,
    )


@dataclass
class TinyBatches:
    """Samples in an order and with masks that depend on (seed, epoch, sample) only."""

    num_samples: int = 20
    batch_size: int = 3
    seed: int = 0
    seen: list[list[int]] = field(default_factory=list)

    @property
    def steps_per_epoch(self) -> int:
        return -(-self.num_samples // self.batch_size)

    def from_position(self, epoch: int, index: int) -> Iterator[Batch]:
        while True:
            for samples in self.order(epoch)[index:]:
                self.seen.append(samples.tolist())
                yield self.batch(epoch, samples)
            epoch, index = epoch + 1, 0

    def order(self, epoch: int) -> list[Tensor]:
        shuffle = torch.Generator().manual_seed(derive_seed(self.seed, "order", epoch))
        return list(torch.randperm(self.num_samples, generator=shuffle).split(self.batch_size))

    def batch(self, epoch: int, samples: Tensor) -> Batch:
        rows = [self.sample(epoch, int(sample)) for sample in samples]
        ids = torch.stack([row[0] for row in rows])
        return make_batch(ids, torch.stack([row[1] for row in rows]), samples)

    def sample(self, epoch: int, sample: int) -> tuple[Tensor, Tensor]:
        text = torch.Generator().manual_seed(derive_seed(7, "text", sample))
        start = int(torch.randint(2, 10, (1,), generator=text))
        ids = torch.arange(start, start + LENGTH)
        masks = torch.Generator().manual_seed(derive_seed(self.seed, "mask", epoch, sample))
        return ids, torch.rand(LENGTH, generator=masks) < 0.3


def tiny_job(
    batches: TinyBatches | None = None, *, width: int = 12, dropout: float = 0.2, **train: Any
) -> TrainingJob:
    """Return a job over tiny batches; the recipe text holds the settings, as a real one does."""
    config = TrainConfig(**{"steps": 12, "learning_rate": 0.05, "log_every": 2, **train})
    stream = batches if batches is not None else TinyBatches(seed=config.order_seed)
    held_out = TinyBatches(num_samples=6, batch_size=4, seed=99)

    def build(vocab_size: int) -> nn.Module:
        torch.manual_seed(config.seed)
        return TinyModel(width, dropout)

    data = RunData(
        batches=stream,
        validation=lambda: (held_out.batch(0, samples) for samples in held_out.order(0)),
        vocab_size=VOCABULARY,
        info={"corpus": "counting", "tokens": stream.num_samples * LENGTH},
        save_tokenizer=lambda path: path.write_text("{}") and None,
    )
    settings = "".join(f"  {key}: {_yaml(value)}\n" for key, value in config.model_dump().items())
    text = f"name: tiny\nencoder: {{hidden_size: {width}}}\ntrain:\n{settings}"
    return TrainingJob(text, config, lambda tell: data, build, tiny_positions)


def _yaml(value: Any) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return str(value).lower()
    return str(list(value)) if isinstance(value, tuple) else str(value)


def run_and_tell(connection: Connection, out: str, steps: int, width: int) -> None:
    """Train in a process of its own, saving after every step; say what happens, until killed."""
    torch.set_num_threads(1)
    job = tiny_job(steps=steps, width=width, checkpoint_every=1, log_every=1)
    result = train_run(job, out, resume=True, progress=lambda p: connection.send(p.stage))
    connection.send(f"ended {result.state} {result.step}")


def run_as_one_of(rank: int, processes: int, port: int, out: str, settings: dict[str, Any]) -> None:
    """Train as one of several processes, with the environment that torchrun would set."""
    torch.set_num_threads(1)
    os.environ.update(
        RANK=str(rank),
        LOCAL_RANK=str(rank),
        WORLD_SIZE=str(processes),
        LOCAL_WORLD_SIZE=str(processes),
        MASTER_ADDR="127.0.0.1",
        MASTER_PORT=str(port),
    )
    train_run(tiny_job(device="cpu", **settings), out, resume=True)
