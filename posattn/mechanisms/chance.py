"""Chance of one forward as steps of a graph: what is drawn follows from a seed that is given as a tensor.

torch.compile cannot see through a `torch.Generator`, nor through values that decide shapes. Each function
here is one node to it, so that a mechanism that draws is no end of a graph.
"""

import torch
from torch import Tensor


def draw_seed() -> Tensor:
    """Return one integer from torch's global generator on the CPU, whatever the device."""
    return torch.randint(2**62, (), device="cpu")


@torch.library.custom_op("posattn::uniform", mutates_args=())
def uniform(seed: Tensor, count: int, rows: int, length: int) -> Tensor:
    """Return numbers of [0, 1) in float64, [count, rows, length], on the CPU."""
    generator = torch.Generator().manual_seed(int(seed))
    return torch.rand((count, rows, length), generator=generator, dtype=torch.float64)


@uniform.register_fake
def _(seed: Tensor, count: int, rows: int, length: int) -> Tensor:
    return seed.new_empty((count, rows, length), dtype=torch.float64)


@torch.library.custom_op("posattn::random_subsets", mutates_args=())
def random_subsets(seed: Tensor, positions: Tensor, lengths: Tensor, limit: int) -> Tensor:
    """Return where tokens are, if texts lie at the sorted values of random subsets of 0 to `limit` - 1.

    A token at `positions` of a text of `lengths` (both [batch, length]) gets the value of that rank among
    the first values of one permutation, as many as the text has tokens; padding (-1) stays -1.
    """
    generator = torch.Generator().manual_seed(int(seed))
    # rank[v] is when value v is drawn: a text of n tokens has the values of ranks below n
    rank = torch.randperm(limit, generator=generator).to(positions.device)
    counts, row = lengths.unique(return_inverse=True)
    is_drawn = rank[None] < counts[:, None]
    values = torch.arange(limit, device=positions.device).where(is_drawn, limit).sort(1).values
    return values[row, positions.clamp(min=0)].masked_fill(positions < 0, -1)


@random_subsets.register_fake
def _(seed: Tensor, positions: Tensor, lengths: Tensor, limit: int) -> Tensor:
    return positions.new_empty(positions.shape)
