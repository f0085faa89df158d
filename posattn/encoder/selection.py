"""The places of a batch that are to be predicted, as rows of equal length."""

from dataclasses import dataclass
from typing import final

import torch
from jaxtyping import Bool, Float, Int, Num
from torch import Tensor

from posattn.shapes import Hidden, QueryHidden


@final
@dataclass(frozen=True)
class Selection:
    """Per sequence, the indices of the selected places, filled up with index 0 where `valid` is False."""

    index: Int[Tensor, "batch query"]
    valid: Bool[Tensor, "batch query"]

    def take(self, hidden: Hidden) -> QueryHidden:
        """Return the states at the selected places."""
        return hidden.gather(1, self.index[:, :, None].expand(-1, -1, hidden.shape[-1]))

    def take_positions(self, positions: Num[Tensor, "#batch length"]) -> Num[Tensor, "batch query"]:
        """Return the positions of the selected places."""
        return positions.expand(self.index.shape[0], -1).gather(1, self.index)

    def take_pairs(self, pairs: Int[Tensor, "#batch length key"]) -> Int[Tensor, "batch query key"]:
        """Return what relates the selected places, as queries, to all keys."""
        whole = pairs.expand(self.index.shape[0], -1, -1)
        return whole.gather(1, self.index[:, :, None].expand(-1, -1, whole.shape[-1]))

    def flatten(self, states: QueryHidden) -> Float[Tensor, "selected hidden"]:
        """Return the valid places only, sequence by sequence, from left to right."""
        return states[self.valid]


def selection(selected: Bool[Tensor, "batch length"]) -> Selection:
    """Return the selected places of each sequence; at least one column, even if nothing is selected."""
    counts = selected.sum(1)
    width = max(int(counts.max()) if counts.numel() else 0, 1)
    # a stable sort puts the selected places first and keeps them in order
    order = torch.argsort((~selected).to(torch.int8), dim=1, stable=True)
    column = torch.arange(width, device=selected.device)
    valid = column[None, :] < counts[:, None]
    return Selection(order[:, :width].masked_fill(~valid, 0), valid)
