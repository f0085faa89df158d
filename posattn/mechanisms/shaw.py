"""Relative position representations (Shaw et al. 2018, arXiv:1803.02155, equations 3 to 5).

    logits[i, j] = q_i . (k_j + key_table[r]) / sqrt(head_dim)
    output_i     = sum_j probs[i, j] (v_j + value_table[r])
    r            = clip(p_j - p_i, -k, k) + k

Both tables have 2 k + 1 rows of head_dim numbers, k = `max_distance`; all heads of a layer share them and
each layer has its own. The paper's base model has k = 16, its big one 8. `adds_to` keeps one of the two
tables (the paper's Table 3 has keys alone and values alone). The value table is what makes this mechanism
put position into the states themselves and not only into the weights of the average.

Against the paper: its text says relations are unique "per layer and head" for the base model
(`share_heads: false`), its section 3.4 and the released Tensor2Tensor code share them across heads (the
default). The paper has no other positions, and none are added here. Rows that the sequence cannot reach
are left out of the products. With k = 0 each table has one row: position reaches nothing, as the paper's
Table 2 (12.5 BLEU) shows.
"""

from collections.abc import Mapping
from typing import Literal, NamedTuple, final

import torch
from einops import rearrange
from pydantic import NonNegativeInt
from torch import Tensor, nn
from typing_extensions import override

from posattn.bias import AttentionBias, RelativeValues, query_products, total_bias
from posattn.mechanisms.base import (
    ANY_RELATION,
    LINE,
    EncoderDims,
    Flops,
    Geometry,
    Mechanism,
    MechanismConfig,
    Site,
    Traits,
    mechanisms,
)
from posattn.positions import Relation, clipped


class ShawConfig(MechanismConfig):
    """Options of Shaw et al.'s relative position representations."""

    name: Literal["shaw"] = "shaw"
    max_distance: NonNegativeInt = 16  # k: distances beyond share the outermost rows
    adds_to: Literal["both", "keys", "values"] = "both"
    share_heads: bool = True  # one table for all heads of a layer, or one for each

    @property
    def has_keys(self) -> bool:
        """Return whether keys have a table."""
        return self.adds_to != "values"

    @property
    def has_values(self) -> bool:
        """Return whether values have a table."""
        return self.adds_to != "keys"

    def rows(self, dims: EncoderDims) -> int:
        """Return the rows of each table."""
        return dims.relation.table_rows(2 * self.max_distance + 1)

    @override
    def traits(self) -> Traits:
        tells = self.max_distance > 0
        return Traits(
            adds_bias=self.has_keys,
            adds_values=self.has_values,
            knows_direction=tells,
            knows_position=tells,
            reads_query=self.has_keys and tells,
            relations=ANY_RELATION if tells else LINE,
        )

    @override
    def fresh_rows_beyond(self, trained: int) -> bool:
        return trained <= self.max_distance

    @override
    def card(self, dims: EncoderDims) -> Mapping[str, str]:
        what = "keys and values" if self.adds_to == "both" else self.adds_to
        return {
            "positions": f"distance clipped at {self.max_distance} in both directions, added to {what}",
            "tables": f"{self.rows(dims)} x {dims.head_dim} for {what}, "
            + ("shared by all heads" if self.share_heads else f"for each of {dims.num_heads} heads")
            + ", own in each layer",
        }

    @override
    def flops(self, dims: EncoderDims, num_queries: int, num_keys: int) -> Flops:
        relation, distances = dims.relation, 2 * max(num_queries, num_keys) - 1
        rows = relation.reached_rows(2 * self.max_distance + 1, distances) + relation.blank_rows()
        tables = self.has_keys + self.has_values
        return Flops(per_sequence=2 * num_queries * rows * dims.hidden_size * tables)


class Rows(NamedTuple):
    """Which rows of the tables this forward can reach, and which of those each pair has."""

    low: int
    high: int
    buckets: tuple[Relation, ...]


class ShawLayer(nn.Module):
    """What each layer owns: a table for keys, one for values, or both."""

    def __init__(self, config: ShawConfig, dims: EncoderDims) -> None:
        """Build the tables."""
        super().__init__()
        rows = config.rows(dims)
        width = dims.head_dim if config.share_heads else dims.hidden_size
        if config.has_keys:
            self.key_table = nn.Embedding(rows, width)
        if config.has_values:
            self.value_table = nn.Embedding(rows, width)


@final
@mechanisms.register("shaw")
class ShawPositions(Mechanism[ShawConfig]):
    """A learned vector for each clipped distance, added to keys, to values, or to both."""

    Config = ShawConfig

    @override
    def make_layer(self) -> ShawLayer:
        return ShawLayer(self.config, self.dims)

    @override
    def prepare(self, geometry: Geometry) -> Rows:
        limit, relation = self.config.max_distance, self.dims.relation
        largest = relation.largest(geometry)
        reach = limit if largest is None else torch.sym_min(limit, largest)  # may be symbolic
        buckets = relation.buckets(
            geometry, 2 * limit + 1, lambda distance: reach - clipped(distance, reach)
        )
        return Rows(limit - reach, limit + reach, buckets)

    @override
    def bias(self, site: Site) -> AttentionBias | None:
        if not self.config.has_keys:
            return None
        rows: Rows = site.prepared
        table = self._reached(self._layer(site).key_table.weight, rows) * site.scale
        if self.config.share_heads:
            table = table[None].expand(self.dims.num_heads, -1, -1)
        return total_bias(query_products("relative key", site.heads.query, table, rows.buckets))

    @override
    def relative_values(self, site: Site) -> RelativeValues | None:
        if not self.config.has_values:
            return None
        rows: Rows = site.prepared
        return RelativeValues(
            self._reached(self._layer(site).value_table.weight, rows), rows.buckets
        )

    def _reached(self, table: Tensor, rows: Rows) -> Tensor:
        """Return the rows that can be reached, of all heads or of each."""
        relation = self.dims.relation
        found = relation.with_blank(relation.reached(table, rows.low, rows.high))
        if self.config.share_heads:
            return found
        return rearrange(found, "r (h d) -> h r d", h=self.dims.num_heads)

    def _layer(self, site: Site) -> ShawLayer:
        assert isinstance(site.layer, ShawLayer)
        return site.layer
