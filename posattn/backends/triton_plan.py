"""What a call's positions, documents and padding come to for the `triton` kernels, found once per forward."""

from dataclasses import dataclass, field
from typing import final

import torch
from jaxtyping import Bool, Int
from torch import Tensor

from posattn.backends.base import AttentionCall
from posattn.backends.triton_statement import Statement
from posattn.positions import Distances


@final
@dataclass(frozen=True)
class Plan:
    """Integers that depend on where tokens are and on nothing else, so that layers can share them."""

    said: Statement
    num_queries: int
    num_keys: int
    device: torch.device
    found: dict[object, list[Tensor]] = field(default_factory=dict)
    """What has been worked out for this plan so far, by what it was made for."""

    @classmethod
    def of(cls, call: AttentionCall, said: Statement) -> "Plan":
        """Return the plan of a call."""
        return cls(said, call.query.shape[2], call.key.shape[2], call.query.device)

    def is_for(self, other: "Plan") -> bool:
        """Return whether this plan is as good as the other: it is about the very same tensors."""
        mine, its = self._about, other._about
        same = len(mine) == len(its) and all(a is b for a, b in zip(mine, its, strict=True))
        return same and self._numbers == other._numbers

    @property
    def rows(self) -> list[Tensor]:
        """Return the bucket of each distance, for every part of the bias."""
        said = self.said
        return [part.row for part in (*said.by_query, *said.by_key, *said.by_head)]

    def places(self) -> list[Tensor]:
        """Return positions for bias and visibility, documents and visible keys; empty where absent."""
        if "places" not in self.found:
            self.found["places"] = self._places()
        return self.found["places"]

    def _places(self) -> list[Tensor]:
        said = self.said
        documents = said.documents[0] if said.documents else None
        found = [
            *self._positions(said.distances or said.seen),
            *self._positions(said.seen or said.distances),
            None if documents is None else documents.queries,
            None if documents is None else documents.keys,
            torch.stack(said.visible).all(0) if said.visible else None,
        ]
        rows = max(one.shape[0] for one in found if one is not None)
        empty = torch.empty(0, dtype=torch.int32, device=self.device)
        return [
            empty if one is None else one.to(torch.int32).expand(rows, -1).contiguous()
            for one in found
        ]

    @property
    def rules(self) -> list[int]:
        """Return window, causal and number of heads that look left; -1 where there is none."""
        said = self.said
        return [
            min(said.windows) if said.windows else -1,
            int(said.is_causal),
            said.directions[0] if said.directions else -1,
        ]

    @property
    def repeats(self) -> bool:
        """Return whether tokens of one text share a position, if their scores want a gradient."""
        is_counted = all(distance.reach is not None for distance in self.said.distances)
        if is_counted or torch.compiler.is_compiling():
            return False
        if "repeats" not in self.found:
            self.found["repeats"] = [torch.tensor(self._repeats(0) or self._repeats(1))]
        return bool(self.found["repeats"][0])

    @property
    def _numbers(self) -> tuple[object, ...]:
        return (*self.rules, self.num_queries, self.num_keys, self.device)

    @property
    def _about(self) -> list[Tensor]:
        said = self.said
        positions = [
            at
            for one in (*said.distances, *said.seen)
            for at in (one.query_positions, one.key_positions)
        ]
        documents = [tensor for rule in said.documents for tensor in (rule.queries, rule.keys)]
        return [*self.rows, *positions, *documents, *said.visible]

    def _positions(self, of: list[Distances]) -> tuple[Tensor, Tensor]:
        if of:
            return of[0].query_positions, of[0].key_positions
        query = torch.arange(self.num_queries, device=self.device)[None]
        return query, torch.arange(self.num_keys, device=self.device)[None]

    def _repeats(self, side: int) -> bool:
        at, documents, visible = self.places()[side], self.places()[4 + side], self.places()[6]
        counts = at >= 0
        if side == 1 and visible.numel():
            counts = counts & (visible != 0)
        return _has_twins(at, documents if documents.numel() else torch.zeros_like(at), counts)


def _has_twins(
    at: Int[Tensor, "batch n"], text: Int[Tensor, "batch n"], counts: Bool[Tensor, "batch n"]
) -> bool:
    """Return whether two counted tokens of a row have the same position in the same text."""
    place = text.long() * 2**32 + at.long()
    alone = -1 - torch.arange(place.shape[1], device=place.device)
    in_order = torch.where(counts, place, alone).sort(dim=1).values
    return bool((in_order[:, 1:] == in_order[:, :-1]).any())
