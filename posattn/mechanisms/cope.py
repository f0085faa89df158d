"""Contextual position encoding, CoPE (Golovneva et al. 2024, arXiv:2405.18719).

    g_ij = sigmoid(scale * q_i . k_j) for visible keys, 0 for the others
    c_ij = sum of g_it over all keys t from j to i, both included, at most max_position - 1
    bias[i, j] = q_i . e[c_ij],   interpolated between the two nearest rows of e

A query counts those keys between another key and itself to which its gate opens, so position means what
content makes it mean: the third sentence back, the last noun. The table e is each layer's own and shared by
heads; it is read by the unscaled query, while gates see scaled logits, as in x-transformers.

As published CoPE is causal by construction (`causal: true`): unmasked, the published code and
x-transformers' module count to the right end of the row, another function, which is `count: to_end`: c_ij
is the sum of g_it over t from j to the end of the text. For both directions, the default here, c_ij
counts the keys from i to j on either side, and keys to the right have a table of their own, so that left
differs from right. What is invisible (padding, other documents, beyond a window) is masked before the
sigmoid and never counted. Counting follows positions, not indices; only their order matters. Tables start
at N(0, initializer_range), at 0 in the code. Gates read queries and keys before any rotation, and their
product is computed a second time for them. A sharper interpolation and mixed heads (`soft_onehot`,
`talking_heads` of x-transformers) are left out.
"""

from collections.abc import Mapping
from typing import Literal, NamedTuple, final

import torch
from jaxtyping import Bool, Int
from pydantic import PositiveInt
from torch import Tensor, nn
from typing_extensions import override

from posattn.bias import AttentionBias, Causal, DenseBias, VisibilityRule
from posattn.mechanisms.base import (
    EncoderDims,
    Flops,
    Geometry,
    Mechanism,
    MechanismConfig,
    Site,
    Traits,
    mechanisms,
)
from posattn.shapes import Logits, QueryHeads


class CoPEConfig(MechanismConfig):
    """Options of contextual position encoding."""

    name: Literal["cope"] = "cope"
    max_position: PositiveInt = 64  # rows of each table; larger counts share the last
    causal: bool = False  # later keys are invisible, as published
    count: Literal["between", "to_end"] = "between"  # which keys: to the query, or to the right end

    @property
    def has_right(self) -> bool:
        """Return whether keys to the right have a table of their own."""
        return not self.causal and self.count == "between"

    @override
    def problems(self, dims: EncoderDims) -> list[str]:
        if self.causal and self.count == "to_end":
            return [
                "cope count: to_end with causal: true is count: between, since later keys are hidden"
            ]
        return []

    @override
    def traits(self) -> Traits:
        return Traits(
            adds_bias=True, causal=self.causal, pairwise=False, reads_query=True, reads_key=True
        )

    @override
    def fresh_rows_beyond(self, trained: int) -> bool:
        return trained < self.max_position

    @override
    def card(self, dims: EncoderDims) -> Mapping[str, str]:
        tables = "a table for each side" if self.has_right else "one table"
        counted = "between" if self.count == "between" else "from the key to the end of the text"
        return {
            "positions": f"sums of gates over the keys {counted}, at most {self.max_position - 1}",
            "tables": f"{tables} of {self.max_position} rows, own in each layer, shared by heads",
        }

    @override
    def flops(self, dims: EncoderDims, num_queries: int, num_keys: int) -> Flops:
        rows = self.max_position * (2 if self.has_right else 1)
        return Flops(per_sequence=2 * num_queries * dims.hidden_size * (num_keys + rows))


class CoPELayer(nn.Module):
    """What each layer owns: a table for keys to the left, and one for keys to the right."""

    def __init__(self, config: CoPEConfig, dims: EncoderDims) -> None:
        """Build the tables."""
        super().__init__()
        self.left = nn.Embedding(config.max_position, dims.head_dim)
        if config.has_right:
            self.right = nn.Embedding(config.max_position, dims.head_dim)


class Order(NamedTuple):
    """The keys from left to right, the place of each key in that order, and who is on whose left."""

    by_position: Int[Tensor, "#batch key"]
    place: Int[Tensor, "#batch key"]
    is_left: Bool[Tensor, "#batch 1 query key"]  # or the query's own place
    is_right: Bool[Tensor, "#batch 1 query key"]  # or the query's own place


@final
@mechanisms.register("cope")
class CoPE(Mechanism[CoPEConfig]):
    """Scores of each query for the count of keys that its gates open to."""

    Config = CoPEConfig

    @override
    def make_layer(self) -> CoPELayer:
        return CoPELayer(self.config, self.dims)

    @override
    def prepare(self, geometry: Geometry) -> Order:
        by_position = geometry.key_positions.argsort(dim=-1)
        distance = geometry.distance.pairs[:, None]
        return Order(by_position, by_position.argsort(dim=-1), distance >= 0, distance <= 0)

    @override
    def bias(self, site: Site) -> AttentionBias:
        layer, order = site.layer, site.prepared
        assert isinstance(layer, CoPELayer)
        query = site.heads.query
        logits_BHQK = (query * site.scale) @ site.heads.key.mT
        exact = torch.promote_types(logits_BHQK.dtype, torch.float32)
        gates_BHQK = logits_BHQK.to(exact).sigmoid()
        if (visible := site.visibility.pairs) is not None:
            gates_BHQK = gates_BHQK.masked_fill(~visible, 0.0)
        if self.config.count == "to_end":
            return DenseBias(
                "cope", self._scores(query, layer.left, self._to_end(gates_BHQK, order))
            )
        to_left, to_right = self._counts(gates_BHQK, order)
        left = self._scores(query, layer.left, to_left)
        if self.config.causal:
            return DenseBias("cope", left)
        right = self._scores(query, layer.right, to_right)
        return DenseBias("cope", torch.where(order.is_left, left, right))

    @override
    def visibility(self, geometry: Geometry) -> tuple[VisibilityRule, ...]:
        return (Causal(geometry.distance),) if self.config.causal else ()

    def _counts(self, gates: Logits, order: Order) -> tuple[Logits, Logits]:
        """Return the sum of gates from each key to the query, if it is on the left and on the right."""
        up_to = self._up_to(gates, order)
        all_left = (gates * order.is_left).sum(-1, keepdim=True)
        not_right = (gates * ~order.is_right).sum(-1, keepdim=True)
        return all_left - (up_to - gates), up_to - not_right

    def _to_end(self, gates: Logits, order: Order) -> Logits:
        """Return the sum of gates from each key to the right end."""
        return gates.sum(-1, keepdim=True) - (self._up_to(gates, order) - gates)

    def _up_to(self, gates: Logits, order: Order) -> Logits:
        """Return the sum of gates from the left end up to each key, included."""
        in_order = gates.gather(-1, _as_index(order.by_position, gates))
        return in_order.cumsum(-1).gather(-1, _as_index(order.place, gates))

    def _scores(self, query: QueryHeads, table: nn.Embedding, count: Logits) -> Logits:
        """Return the query's score of the table at the counts, interpolated between rows."""
        scores_BHQR = query @ table.weight.mT.to(query.dtype)
        count = count.clamp(0.0, self.config.max_position - 1.0)
        below = count.floor()
        share = (count - below).to(scores_BHQR.dtype)
        under = scores_BHQR.gather(-1, below.long())
        over = scores_BHQR.gather(-1, count.ceil().long())
        return over * share + under * (1 - share)


def _as_index(key: Int[Tensor, "#batch key"], like: Logits) -> Int[Tensor, "batch heads query key"]:
    return key[:, None, None, :].expand_as(like)
