"""`Geometry`: where the queries and keys of one forward are, and how they relate."""

from dataclasses import dataclass

from jaxtyping import Int, Num
from torch import Tensor

from posattn.lazy import cached_property
from posattn.positions import Distances, GivenPairs, Relation


@dataclass(frozen=True)
class Geometry:
    """The positions of queries and keys of one forward; they may differ in number and value.

    `reach` is the largest distance, in either direction, where it is known without looking at the
    positions; padding has position -1 and is invisible. `query_documents` and `key_documents` number
    the texts of a packed row; None where a row is one text. `given` are the user's integers for all
    pairs, in an encoder whose relation is given. Segments (token types) are None where all tokens are of one
    segment, or no mechanism reads them.
    """

    query_positions: Num[Tensor, "#batch query"]
    key_positions: Num[Tensor, "#batch key"]
    reach: int | None = None
    query_documents: Int[Tensor, "batch query"] | None = None
    key_documents: Int[Tensor, "batch key"] | None = None
    given: GivenPairs | None = None
    query_segments: Int[Tensor, "batch query"] | None = None
    key_segments: Int[Tensor, "batch key"] | None = None

    @cached_property
    def distance(self) -> Distances:
        """Return query position minus key position, as a value: no tensor of all pairs exists yet."""
        return Distances(self.query_positions, self.key_positions, self.reach)

    @property
    def relation(self) -> Relation:
        """Return the integer of each pair: what was given, or the distance."""
        return self.distance if self.given is None else self.given

    @cached_property
    def query_lengths(self) -> Int[Tensor, "#batch #query"]:
        """Return the length of each query's text, which is its largest key position plus one."""
        return self._lengths(self.query_documents)

    @cached_property
    def key_lengths(self) -> Int[Tensor, "#batch #key"]:
        """Return the length of each key's text, which is its largest key position plus one."""
        return self._lengths(self.key_documents)

    def _lengths(self, documents: Int[Tensor, "batch any"] | None) -> Int[Tensor, "#batch #any"]:
        last = self.key_positions
        if documents is not None and self.key_documents is not None:
            same = documents[:, :, None] == self.key_documents[:, None, :]
            last = last[:, None, :].expand_as(same).masked_fill(~same, -1)
            return last.amax(dim=-1) + 1
        return last.amax(dim=-1, keepdim=True) + 1
