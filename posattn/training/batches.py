"""Batches: a training stream that can be resumed anywhere, and validation with fixed targets.

Which samples a training batch has depends on (seed, epoch, index) and the batch size; what is
masked in a sample on (seed, epoch, sample). Neither depends on the number of workers, on
accumulation, on the device, or on whether the run was resumed. The last batch of an epoch is short
if the samples do not divide; it is used.
"""

import signal
from collections.abc import Iterator
from dataclasses import dataclass, fields, replace
from hashlib import sha256
from threading import current_thread, main_thread
from typing import Any

import numpy as np
import torch
from jaxtyping import Bool, Int
from numpy.typing import NDArray
from torch import Tensor
from torch.utils.data import DataLoader, Dataset

from posattn.errors import DataError, RunFailed
from posattn.training.masking import IGNORE
from posattn.training.objectives import Objective, ObjectiveConfig, objectives
from posattn.training.text.draws import Keys, Purpose, fold, permutation
from posattn.training.text.prepare import Split
from posattn.training.text.samples import Rows, Samples

__all__ = ["IGNORE", "Batch", "BatchStream", "ValidationBatches", "validation_batches"]

Ids = NDArray[np.int64]


@dataclass(frozen=True)
class Batch:
    """Some rows of tokens for one forward pass."""

    ids: Int[Tensor, "batch length"]
    """What the model sees."""
    targets: Int[Tensor, "batch length"]
    """The token to restore where one was selected, IGNORE elsewhere."""
    visible: Bool[Tensor, "batch length"]
    """False at padding."""
    sample_ids: Int[Tensor, " batch"]
    """The number of each row in its part of the corpus."""
    documents: Int[Tensor, "batch length"] | None = None
    """The document of each token within its row, if tokens may see their own document only."""
    segments: Int[Tensor, "batch length"] | None = None
    """The segment (token type) of each token, if the text comes in pairs."""
    positions: Int[Tensor, "batch length"] | None = None
    """Where each token is, if the objective says so; -1 at padding. None: tokens are counted."""
    lanes: Int[Tensor, " batch"] | None = None
    """order: streams: a row continues the row of its lane in the batch before; lanes are unique."""

    @property
    def selected(self) -> Bool[Tensor, "batch length"]:
        """True where a token is to be restored."""
        return self.targets != IGNORE

    @property
    def num_targets(self) -> int:
        """The number of tokens to restore."""
        return int(self.selected.sum())

    @property
    def num_tokens(self) -> int:
        """The number of tokens that are not padding."""
        return int(self.visible.sum())

    def digest(self) -> str:
        """Return the SHA-256 of all contents, equal in every process and on every device."""
        digest = sha256()
        for field in fields(self):
            tensor = getattr(self, field.name)
            if tensor is None:
                continue
            array = np.ascontiguousarray(tensor.cpu().numpy().astype("<i8"))
            digest.update(f"{field.name}{array.shape}".encode())
            digest.update(array.tobytes())
        return digest.hexdigest()

    def to(self, device: torch.device | str) -> "Batch":
        """Return the batch with all tensors on `device`."""
        there = {
            field.name: tensor.to(device, non_blocking=True)
            for field in fields(self)
            if (tensor := getattr(self, field.name)) is not None
        }
        return replace(self, **there)


class BatchStream:
    """The training batches of all epochs, without end.

    `order: shuffled`: each epoch is another permutation of the samples. `order: streams`: the
    samples, from another starting point in each epoch, are dealt to `batch_size` lanes of
    consecutive rows; lanes that have one row more come first, so that the last batch of an epoch is
    a prefix of the others.
    """

    def __init__(
        self,
        split: Split,
        objective: ObjectiveConfig,
        *,
        batch_size: int,
        seed: int,
        workers: int = 0,
    ) -> None:
        """Take the samples of a split. DataError if they do not fill one batch.

        `seed` decides order and masks. `workers` processes make batches ahead of time; 0 makes them
        here.
        """
        samples = len(split)
        if samples < batch_size:
            raise DataError(
                f"the {split.part} part has {samples} samples of {split.layout.max_length} tokens, "
                f"fewer than one batch of {batch_size}; lower train.batch_size or "
                "data.max_length, or add text"
            )
        self.split = split
        self.objective = objectives.get(objective.name)(objective, split.vocabulary)
        self.batch_size = batch_size
        self.seed = seed
        self.workers = workers
        self.steps_per_epoch = -(-samples // batch_size)
        """The number of batches in an epoch, before any accumulation."""
        self._order: tuple[int, Ids] = (-1, np.empty(0, np.int64))

    def __iter__(self) -> Iterator[Batch]:
        """Return the batches from the start of epoch 0, without end."""
        return self.from_position(0, 0)

    def position(self, batches: int) -> tuple[int, int]:
        """Return the (epoch, index) that comes after this many batches."""
        return divmod(batches, self.steps_per_epoch)

    def from_position(self, epoch: int, index: int) -> Iterator[Batch]:
        """Return the batches from this one on, over all later epochs, without end."""
        return self._batches(_Places(self.steps_per_epoch, epoch, index, None))

    def epoch(self, epoch: int, index: int = 0) -> Iterator[Batch]:
        """Return the rest of one epoch from batch `index` on."""
        return self._batches(_Places(self.steps_per_epoch, epoch, index, epoch + 1))

    def batch(self, epoch: int, index: int) -> Batch:
        """Return one batch, made in this process."""
        if not 0 <= index < self.steps_per_epoch:
            raise IndexError(f"batch {index} of an epoch with {self.steps_per_epoch}")
        if self.split.layout.order == "streams":
            samples, lanes = self._lanes(epoch, index)
        else:
            start = index * self.batch_size
            samples, lanes = self._epoch_order(epoch)[start : start + self.batch_size], None
        keys = fold(int(Purpose.TRAINING_MASKS), self.seed, epoch, samples)
        rows = self.split.samples.rows(samples)
        return _finish(
            rows, samples, keys, np.zeros_like(samples), self.objective, self.split, lanes
        )

    def _epoch_order(self, epoch: int) -> Ids:
        if self._order[0] != epoch:
            order = permutation(len(self.split), int(Purpose.ORDER), self.seed, epoch)
            self._order = (epoch, order)
        return self._order[1]

    def _lanes(self, epoch: int, index: int) -> tuple[Ids, Ids]:
        samples, lanes = _dealt(len(self.split), self.batch_size, index)
        shift = int(fold(int(Purpose.LANES), self.seed, epoch)[0] % np.uint64(len(self.split)))
        return (samples + shift) % len(self.split), lanes + epoch * self.batch_size

    def _batches(self, places: "_Places") -> Iterator[Batch]:
        if self.workers == 0:
            for epoch, index in places:
                yield self.batch(epoch, index)
            return
        loader: DataLoader[Batch] = DataLoader(
            _BatchesByPlace(self),
            batch_size=None,
            sampler=places,
            num_workers=self.workers,
            collate_fn=_as_it_is,
        )
        try:
            yield from _started(loader)
        except (RuntimeError, EOFError, ConnectionError) as error:
            if isinstance(error, RuntimeError) and "DataLoader worker" not in str(error):
                raise
            raise RunFailed(
                f"one of the {self.workers} data workers died "
                f"({str(error) or type(error).__name__}); the machine may be out of "
                "memory: lower train.workers (0 makes batches in the main process)"
            ) from error

    def __getstate__(self) -> dict[str, object]:
        return {**self.__dict__, "_order": (-1, np.empty(0, np.int64))}


@dataclass(frozen=True)
class _Places:
    """The (epoch, index) pairs from a starting point on; up to epoch `stop`, or without end."""

    per_epoch: int
    epoch: int
    index: int
    stop: int | None

    def __iter__(self) -> Iterator[tuple[int, int]]:
        epoch, index = self.epoch, self.index
        while epoch != self.stop:
            for place in range(index, self.per_epoch):
                yield epoch, place
            epoch, index = epoch + 1, 0


class _BatchesByPlace(Dataset[Batch]):
    """A stream as torch's DataLoader wants it: batches by (epoch, index)."""

    def __init__(self, stream: BatchStream) -> None:
        self._stream = stream

    def __getitem__(self, place: tuple[int, int]) -> Batch:
        return self._stream.batch(*place)


def _started(loader: "DataLoader[Batch]") -> Iterator[Batch]:
    """Start the workers, and have their deaths told where the next batch is waited for.

    torch answers the signal of a dead child with an exception, which then rises in whatever line
    the process happens to be. The waiting itself finds a dead worker too, within five seconds.
    """
    if current_thread() is not main_thread():
        return iter(loader)
    before = signal.getsignal(signal.SIGCHLD)
    batches = iter(loader)
    signal.signal(signal.SIGCHLD, before if before is not None else signal.SIG_DFL)
    return batches


def _as_it_is(batch: Any) -> Any:
    """Return what it is given: the batches are whole already."""
    return batch


class ValidationBatches(Iterator[Batch]):
    """Validation batches in order, with the counts of what they cover."""

    def __init__(
        self, split: Split, samples: Samples, objective: Objective, batch_size: int, seed: int
    ) -> None:
        """Take the rows to go through; see `validation_batches`."""
        self.num_samples = len(samples)
        self.leftover_tokens = samples.leftover_tokens
        """Tokens of those asked for that fill no row and are left out."""
        self._split = split
        self._samples = samples
        self._objective = objective
        self._batch_size = batch_size
        self._seed = seed
        self._index = 0

    def __len__(self) -> int:
        """Return the number of batches in all."""
        return -(-self.num_samples // self._batch_size)

    def __iter__(self) -> "ValidationBatches":
        return self

    def __next__(self) -> Batch:
        if self._index >= len(self):
            raise StopIteration
        if self._split.layout.order == "streams":
            samples, lanes = _dealt(self.num_samples, self._batch_size, self._index)
        else:
            start = self._index * self._batch_size
            stop = min(start + self._batch_size, self.num_samples)
            samples, lanes = np.arange(start, stop), None
        self._index += 1
        rows = self._samples.rows(samples)
        keys = np.repeat(fold(int(Purpose.VALIDATION_MASKS), self._seed), len(samples))
        return _finish(rows, samples, keys, rows.origins, self._objective, self._split, lanes)


def validation_batches(
    split: Split,
    objective: ObjectiveConfig,
    *,
    length: int | None = None,
    batch_size: int,
    seed: int,
    limit_tokens: int | None = None,
) -> ValidationBatches:
    """Return batches of a split in order, with targets that are the same each time.

    Each token is drawn for by (seed, its place in the token stream): the targets depend neither on
    the batch size nor on `length`, so that losses at several lengths are about the same targets.
    `length` is the layout's maximum length unless given, and may exceed it; `limit_tokens` takes
    the first so many tokens. DataError if they do not fill one row.
    """
    length = split.layout.max_length if length is None else length
    samples = split.samples_at(length, limit_tokens)
    if not len(samples):
        raise DataError(
            f"the {split.part} part has {samples.used} tokens to evaluate on, fewer than one row of "
            f"{length}; raise data.validation_fraction, add text, or evaluate at a shorter length"
        )
    built = objectives.get(objective.name)(objective, split.vocabulary)
    return ValidationBatches(split, samples, built, batch_size, seed)


def _dealt(count: int, lanes: int, index: int) -> tuple[Ids, Ids]:
    """Return (samples, lanes) of step `index`: `count` samples dealt to lanes of consecutive ones.

    The first `count % lanes` lanes have one more, and alone are in the last step.
    """
    lanes = min(lanes, count)
    rest = count % lanes
    numbers = np.arange(lanes, dtype=np.int64)
    starts = numbers * (count // lanes) + np.minimum(numbers, rest)
    lengths = count // lanes + (numbers < rest)
    numbers = numbers[lengths > index]
    return starts[numbers] + index, numbers


def _finish(
    rows: Rows,
    samples: Ids,
    keys: Keys,
    first_counters: Ids,
    objective: Objective,
    split: Split,
    lanes: Ids | None,
) -> Batch:
    """Return the batch of some rows: targets chosen, padding on the side that the layout wants."""
    counters = first_counters[:, None] + np.arange(rows.ids.shape[1])
    ids, targets = objective.apply(rows.ids, rows.visible, keys, counters)
    positions = objective.positions(rows.ids, rows.visible, keys, counters)
    arrays: dict[str, NDArray[Any] | None] = {
        "ids": ids,
        "targets": targets,
        "visible": rows.visible,
        "documents": rows.documents,
        "positions": None if positions is None else np.where(rows.visible, positions, -1),
    }
    if split.layout.padding_side == "left":
        arrays = {name: _padded_left(array, rows.visible) for name, array in arrays.items()}
    arrays |= {"sample_ids": samples, "lanes": lanes}
    tensors = {
        name: torch.from_numpy(np.ascontiguousarray(array))
        for name, array in arrays.items()
        if array is not None
    }
    return Batch(**tensors)


def _padded_left(array: NDArray[Any] | None, visible: NDArray[np.bool_]) -> NDArray[Any] | None:
    """Return rows whose padding is moved from the right to the left."""
    if array is None:
        return None
    length = visible.shape[1]
    shift = length - visible.sum(axis=1, keepdims=True)
    return np.take_along_axis(array, (np.arange(length) - shift) % length, axis=1)
