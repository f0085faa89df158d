"""Segment memory: what each layer keeps of earlier segments of the same stream (Transformer-XL)."""

from dataclasses import dataclass
from typing import final

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor


@final
@dataclass(frozen=True)
class SegmentMemory:
    """The inputs that each layer had for the last tokens of the streams in a batch, detached.

    `states[l]` is the input of layer l; `positions` count back from the start of the next segment
    (-1 is the token just before it); `visible` is False where a stream has no such token yet.
    """

    states: tuple[Float[Tensor, "batch memory hidden"], ...]
    positions: Int[Tensor, "batch memory"]
    visible: Bool[Tensor, "batch memory"]

    @property
    def length(self) -> int:
        """Return the number of states kept per stream."""
        return self.positions.shape[1]

    def select(self, rows: Int[Tensor, " streams"]) -> "SegmentMemory":
        """Return the memory of some of the streams, in the order of `rows`."""
        states = tuple(state[rows] for state in self.states)
        return SegmentMemory(states, self.positions[rows], self.visible[rows])

    def forget(self, starts: Bool[Tensor, " batch"]) -> "SegmentMemory":
        """Return the memory with the streams that start anew emptied."""
        return SegmentMemory(self.states, self.positions, self.visible & ~starts[:, None])

    def extended(
        self,
        inputs: list[Float[Tensor, "batch length hidden"]],
        positions: Int[Tensor, "batch length"],
        visible: Bool[Tensor, "batch length"],
    ) -> "SegmentMemory":
        """Return the memory after one more segment, as long as before.

        `positions` count from 0 at the start of the segment. Padding is not kept, so a stream remembers the
        same however much its segments were padded.
        """
        next_start = (positions + 1).masked_fill(~visible, 0).amax(1, keepdim=True)
        known = torch.cat([self.positions, positions], dim=1) - next_start
        seen = torch.cat([self.visible, visible], dim=1)
        # a stable sort moves what is visible to the right end, in order
        kept = torch.argsort(seen.to(torch.int8), dim=1, stable=True)[:, -self.length :]
        states = tuple(
            torch.cat([old, new.detach().to(old.dtype)], dim=1).gather(
                1, kept[:, :, None].expand(-1, -1, old.shape[-1])
            )
            for old, new in zip(self.states, inputs, strict=True)
        )
        return SegmentMemory(states, known.gather(1, kept), seen.gather(1, kept))


def empty_memory(
    num_streams: int,
    length: int,
    num_layers: int,
    hidden_size: int,
    device: torch.device | None = None,
    dtype: torch.dtype | None = None,
) -> SegmentMemory:
    """Return a memory that has seen nothing."""
    state = torch.zeros(num_streams, length, hidden_size, device=device, dtype=dtype)
    positions = torch.arange(-length, 0, device=device).expand(num_streams, -1)
    visible = torch.zeros(num_streams, length, dtype=torch.bool, device=device)
    return SegmentMemory((state,) * num_layers, positions, visible)
