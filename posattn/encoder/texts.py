"""The texts of a batch without their padding: real tokens in one row, attention by texts of like length.

Projections, norms and feed-forward blocks see one row of real tokens. For attention the texts are laid
out again as rows, those of like length together, so that each group is a padded batch with little
padding and every mechanism and backend computes it as it computes any other.
"""

from dataclasses import dataclass
from typing import final

import torch
from jaxtyping import Bool, Int, Shaped
from torch import Tensor

from posattn.encoder.selection import Selection, selection
from posattn.lazy import cached_property

SHARED_FROM = 0.5
"""A text shares the group of a longer one from this part of its length on."""


@final
@dataclass(frozen=True)
class TextGroup:
    """Texts of like length: for each place its token's number, 0 where `valid` is False."""

    index: Int[Tensor, "texts length"]
    valid: Bool[Tensor, "texts length"]
    is_ragged: bool

    @property
    def longest(self) -> int:
        """Return the length of the longest of them."""
        return self.index.shape[1]

    def take(
        self, values: Shaped[Tensor, "1 tokens *more"]
    ) -> Shaped[Tensor, "texts length *more"]:
        """Return the values of the group's tokens; those of token 0 where a text has ended."""
        taken = values[0].index_select(0, self.index.flatten())
        return taken.view(*self.index.shape, *values.shape[2:])

    @cached_property
    def slots(self) -> Int[Tensor, " tokens"]:
        """Return which of the group's places, counted row by row, hold a token."""
        return self.valid.flatten().nonzero().squeeze(1)

    @cached_property
    def numbers(self) -> Int[Tensor, " tokens"]:
        """Return the numbers of these tokens."""
        return self.index.flatten()[self.slots]


@final
@dataclass(frozen=True)
class Texts:
    """The real tokens of a batch of `batch` x `length`, numbered row by row, and their texts."""

    batch: int
    length: int
    places: Int[Tensor, " tokens"]
    groups: tuple[TextGroup, ...]

    def in_a_row(
        self, values: Shaped[Tensor, "#batch length *more"]
    ) -> Shaped[Tensor, "1 tokens *more"]:
        """Return the values of the real tokens, one after the other."""
        whole = values.expand(self.batch, *values.shape[1:])
        return whole.flatten(0, 1).index_select(0, self.places)[None]

    def pairs_in(
        self, group: TextGroup, pairs: Int[Tensor, "#batch length length"]
    ) -> Int[Tensor, "texts place place"]:
        """Return the integers of the pairs within each text of a group."""
        place = self.places[group.index]
        row, column = place[:, :1, None] // self.length, place % self.length
        whole = pairs.expand(self.batch, -1, -1)
        return whole[row, column[:, :, None], column[:, None, :]]

    def queries(self, chosen: Selection) -> tuple[tuple[TextGroup, Selection, TextGroup], ...]:
        """Return the groups that hold chosen tokens, with these as places and by number of the choice."""
        number = torch.full_like(self.places, -1)
        tokens = chosen.index[chosen.valid]
        number[tokens] = torch.arange(tokens.shape[0], device=tokens.device)
        found = []
        for group in self.groups:
            numbers = number[group.index].masked_fill(~group.valid, -1)
            places = selection(numbers >= 0)
            if bool(places.valid.any()):
                index = numbers.gather(1, places.index).masked_fill(~places.valid, 0)
                found.append((group, places, TextGroup(index, places.valid, is_ragged=True)))
        return tuple(found)

    def in_rows(
        self, values: Shaped[Tensor, "1 tokens *more"]
    ) -> Shaped[Tensor, "batch length *more"]:
        """Return the values where the batch has their tokens, and zeros at padding."""
        whole = values.new_zeros(self.batch * self.length, *values.shape[2:])
        whole = whole.index_copy(0, self.places, values[0])
        return whole.view(self.batch, self.length, *values.shape[2:])


def find_texts(
    visible: Bool[Tensor, "batch length"], documents: Int[Tensor, "batch length"] | None
) -> Texts:
    """Return the texts of a batch: the rows without padding, or the documents within them."""
    batch, length = visible.shape
    places = visible.flatten().nonzero().squeeze(1)
    owner = places // length
    if documents is not None:
        keys = torch.stack([owner, documents.flatten()[places]])
        owner = torch.unique(keys, dim=1, return_inverse=True)[1]
    order = torch.argsort(owner, stable=True)
    lengths = torch.bincount(owner)
    starts = lengths.cumsum(0) - lengths
    found = sorted(enumerate(lengths.tolist()), key=lambda text: -text[1])
    groups = []
    for numbers, longest, shortest in _by_length([text for text in found if text[1]]):
        texts = torch.tensor(numbers, device=visible.device)
        column = torch.arange(longest, device=visible.device)
        valid = column < lengths[texts][:, None]
        token = (starts[texts][:, None] + column).masked_fill(~valid, 0)
        index = order[token].masked_fill(~valid, 0)
        groups.append(TextGroup(index, valid, shortest < longest))
    return Texts(batch, length, places, tuple(groups))


def _by_length(texts: list[tuple[int, int]]) -> list[tuple[list[int], int, int]]:
    """Return groups of (number, length) pairs, longest first: numbers, longest and shortest."""
    groups: list[tuple[list[int], int, int]] = []
    for number, length in texts:
        if groups and length >= SHARED_FROM * groups[-1][1]:
            groups[-1][0].append(number)
            groups[-1] = (groups[-1][0], groups[-1][1], length)
        else:
            groups.append(([number], length, length))
    return groups
