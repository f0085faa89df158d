"""Segment memory by lane: what a stream's next segment gets to see of the segments before it."""

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from posattn.encoder.memory import SegmentMemory, empty_memory
from posattn.training.batches import Batch


@dataclass(frozen=True)
class LaneMemory:
    """The memory of the lanes of the last batch; a value, so that a step can be given up.

    A lane of the next batch that was not in the last one starts with an empty memory, and a lane
    that is not in the next batch is forgotten: memory never crosses from one stream to another. For
    models without memory, and for batches without lanes, there is nothing to carry.
    """

    model: nn.Module
    lanes: Tensor | None = None
    memory: SegmentMemory | None = None

    def before(self, batch: Batch) -> SegmentMemory | None:
        """Return the memory of the batch's rows, in their order."""
        length = self._length()
        if length == 0 or batch.lanes is None:
            return None
        if self.lanes is None or self.memory is None:
            return self._empty(len(batch.lanes), length)
        same = batch.lanes[:, None] == self.lanes[None, :]
        known = same.any(dim=1)
        device = self.memory.visible.device
        rows = same.to(torch.int64).argmax(dim=1).to(device)
        return self.memory.select(rows).forget(~known.to(device))

    def after(self, batch: Batch, memory: SegmentMemory | None) -> "LaneMemory":
        """Return the memory to carry on after a batch whose forward returned `memory`."""
        if self._length() == 0 or batch.lanes is None:
            return self
        return LaneMemory(self.model, batch.lanes, memory)

    def emptied(self) -> "LaneMemory":
        """Return the memory at the start of an epoch."""
        return LaneMemory(self.model)

    def tensors(self) -> dict[str, Tensor]:
        """Return the memory as plain tensors for a checkpoint; empty if there is none."""
        if self.lanes is None or self.memory is None:
            return {}
        states = {f"states.{layer}": state for layer, state in enumerate(self.memory.states)}
        return {
            "lanes": self.lanes,
            "positions": self.memory.positions,
            "visible": self.memory.visible,
            **states,
        }

    def restored(self, tensors: dict[str, Tensor], device: torch.device) -> "LaneMemory":
        """Return the memory that `tensors` came from."""
        if not tensors:
            return self.emptied()
        num_layers = sum(name.startswith("states.") for name in tensors)
        states = tuple(tensors[f"states.{layer}"].to(device) for layer in range(num_layers))
        memory = SegmentMemory(
            states, tensors["positions"].to(device), tensors["visible"].to(device)
        )
        return LaneMemory(self.model, tensors["lanes"], memory)

    def _length(self) -> int:
        config: Any = getattr(self.model, "config", None)
        return config.memory_length() if config is not None else 0

    def _empty(self, num_streams: int, length: int) -> SegmentMemory:
        config: Any = self.model.config
        parameter = next(self.model.parameters())
        return empty_memory(
            num_streams, length, config.num_layers, config.hidden_size,
            parameter.device, parameter.dtype,
        )  # fmt: skip
