"""Positions counted over the tokens of a row, or of each document in it."""

import torch
from jaxtyping import Bool, Int
from torch import Tensor


def counted_positions(visible: Bool[Tensor, "batch length"]) -> Int[Tensor, "batch length"]:
    """Return positions counted over visible tokens from 0; padding, wherever it is, has -1."""
    return (visible.long().cumsum(dim=1) - 1).masked_fill(~visible, -1)


def document_positions(
    documents: Int[Tensor, "batch length"], visible: Bool[Tensor, "batch length"] | None
) -> Int[Tensor, "batch length"]:
    """Return positions counted anew from 0 wherever the document number changes; padding has -1."""
    if visible is None:
        visible = torch.ones_like(documents, dtype=torch.bool)
    starts = torch.ones_like(visible)
    starts[:, 1:] = documents[:, 1:] != documents[:, :-1]
    before = visible.long().cumsum(dim=1) - visible.long()  # visible tokens further left
    at_start = torch.cummax(torch.where(starts, before, 0), dim=1).values
    return (before - at_start).masked_fill(~visible, -1)
