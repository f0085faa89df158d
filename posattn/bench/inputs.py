"""`Inputs`: the random tokens of a cell, whole rows or texts of mixed length with padding behind them."""

from dataclasses import dataclass
from typing import TypeAlias, final

import torch
from jaxtyping import Bool, Int
from torch import Tensor

from posattn.bench.plan import Cell, Mixed

Ids: TypeAlias = Int[Tensor, "batch length"]
Visible: TypeAlias = Bool[Tensor, "batch length"]

FIRST_ID = 3  # ids below may mean padding or the like to another library


@final
@dataclass(frozen=True)
class Inputs:
    """Tokens of a batch; `visible` is True at real ones, and None where all are."""

    ids: Ids
    visible: Visible | None

    def real(self, states: Tensor) -> Tensor:
        """Return the states at real tokens."""
        return states if self.visible is None else states[self.visible]


def make_inputs(cell: Cell, vocab_size: int, device: torch.device) -> Inputs:
    """Return the tokens of a cell, the same at every call; rows are as long as the longest text."""
    generator = torch.Generator().manual_seed(0)
    length, visible = cell.length, None
    if cell.mixed is not None:
        lengths = _lengths(cell, cell.mixed, generator)
        length = int(lengths.max())
        visible = (torch.arange(length)[None] < lengths[:, None]).to(device)
    ids = torch.randint(FIRST_ID, vocab_size, (cell.batch_size, length), generator=generator)
    return Inputs(ids.to(device), visible)


def described(cell: Cell) -> str:
    """Return the tokens of a cell in words."""
    if cell.mixed is None:
        return "random tokens without padding"
    lengths = _lengths(cell, cell.mixed, torch.Generator().manual_seed(0))
    mixed = cell.mixed
    return (
        f"{cell.batch_size} texts of {int(lengths.min())} to {int(lengths.max())} random tokens, mean "
        f"{float(lengths.float().mean()):.1f} (log-normal, median {mixed.median}, sigma {mixed.sigma:g}, "
        f"{mixed.shortest} to {cell.length}), padded to the longest"
    )


def _lengths(cell: Cell, mixed: Mixed, generator: torch.Generator) -> Int[Tensor, "*batch"]:
    noise = torch.randn(cell.batch_size, generator=generator) * mixed.sigma
    return (mixed.median * noise.exp()).long().clamp(mixed.shortest, cell.length)
