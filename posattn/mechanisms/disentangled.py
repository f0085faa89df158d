"""Disentangled attention of DeBERTa (He et al. 2021, arXiv:2006.03654, section 3.1; v3: arXiv:2111.09543).

    logits[i, j] = (q_i . k_j  +  q_i . K_r[d]  +  Q_r[e] . k_j  +  Q_r[e] . K_r[d]) / sqrt(s head_dim)
                       c2c            c2p              p2c              p2p

    d = row of p_i - p_j,  s = 1 + number of position terms that are on
    K_r = P W_kr,  Q_r = P W_qr,  P one table of 2 * span rows shared by all layers

    e = d                  `p2c_index: reference`: every released code (Microsoft's, transformers', LTG-BERT)
    e = row of p_j - p_i   `p2c_index: paper`: equation 4 and algorithm 1

Rows: `clipped` (v1) is clamp(distance + k, 0, 2 k - 1), span k, so distances k - 1 and beyond share the
last row and only -k and beyond the first. `log` (v2, v3) is the log bucket plus span; row 0 is never used.

Against the papers and codes: p2p is the product that the paper leaves out as adding little;
Microsoft's branch for it cannot run. The scale divides K_r and Q_r before any product, so
half precision does not overflow. `scale_terms` holds s at a number while terms are switched off,
which tells the term's effect from the scale's. With `projections: own` (v1), W_kr has no bias and
W_qr has one; `shared` (v3) uses the layer's own content projections, their biases included.
`norm_table` (v2, v3) normalises P once per forward. `table_dropout` acts on P afresh in every layer.
Distances past the largest log bucket stay within it, as in Microsoft's code (`beyond: held`);
transformers lets buckets grow and holds the row (`beyond: growing`), so that keys max_distance and more
to the right of the query read row 0, which training at that length never touched (see
positions/buckets.py).
`key_bias` gives W_kr of `projections: own` the bias that v2 has; it adds the same to all logits of a query,
which softmax does not see.
"""

import math
from collections.abc import Mapping
from typing import Annotated, Literal, NamedTuple, final

import torch
from einops import rearrange
from jaxtyping import Float, Int
from pydantic import Field, PositiveInt, model_validator
from torch import Tensor, nn
from typing_extensions import override

from posattn.bias import AttentionBias, BucketScores, key_products, query_products, total_bias
from posattn.config import FrozenConfig
from posattn.mechanisms.base import (
    ANY_RELATION,
    DISTANCES,
    EncoderDims,
    Flops,
    Geometry,
    Mechanism,
    MechanismConfig,
    Site,
    Traits,
    mechanisms,
)
from posattn.mechanisms.weight_cache import WeightCache
from posattn.positions import Relation, clipped, log_buckets


class ClippedDistances(FrozenConfig):
    """A row for each distance up to `max_distance` (DeBERTa v1: 512)."""

    name: Literal["clipped"] = "clipped"
    max_distance: PositiveInt = 512

    def span(self) -> int:
        """Return the rows per direction."""
        return self.max_distance

    def largest(self) -> int:
        """Return the distance from which on all are alike."""
        return self.max_distance

    def signed(self, distance: Int[Tensor, "*any"]) -> Int[Tensor, "*any"]:
        """Return the distance as an odd function that decides the row in both directions."""
        return clipped(distance, self.max_distance)

    def describe(self) -> str:
        """Return the words of the architecture card."""
        return f"distance clipped at -{self.max_distance} and {self.max_distance - 1}"


class LogBuckets(FrozenConfig):
    """A row for each near distance, logarithmic beyond (DeBERTa v2 and v3: 256 and 512)."""

    name: Literal["log"] = "log"
    num_buckets: Annotated[int, Field(ge=2)] = 256  # per direction; half of them exact
    max_distance: PositiveInt = 512
    beyond: Literal["held", "growing"] = "held"  # past the last bucket: Microsoft's, transformers'

    @model_validator(mode="after")
    def _reaches_past_the_exact_half(self) -> "LogBuckets":
        if self.max_distance <= self.num_buckets // 2 + 1:
            raise ValueError(
                f"max_distance {self.max_distance} leaves no room for log buckets beyond the exact "
                f"ones up to {self.num_buckets // 2}; raise it above {self.num_buckets // 2 + 1}, or "
                "use clipped"
            )
        return self

    def span(self) -> int:
        """Return the rows per direction."""
        return self.num_buckets

    def largest(self) -> int:
        """Return the distance from which on all are alike."""
        if self.beyond == "held":
            return self.max_distance
        middle = self.num_buckets // 2  # buckets grow by 1 whenever the distance grows by a factor
        steps = (self.num_buckets - middle) / max(middle - 1, 1)
        return math.ceil(middle * ((self.max_distance - 1) / middle) ** steps)

    def signed(self, distance: Int[Tensor, "*any"]) -> Int[Tensor, "*any"]:
        """Return the bucket as an odd function of the distance."""
        held = self.beyond == "held"
        return log_buckets(distance, self.num_buckets, self.max_distance, held)

    def describe(self) -> str:
        """Return the words of the architecture card."""
        return (
            f"log buckets, {self.num_buckets} per direction, exact up to {self.num_buckets // 2}, "
            f"alike from {self.largest()} on"
        )


class DisentangledConfig(MechanismConfig):
    """Options of disentangled attention."""

    name: Literal["disentangled"] = "disentangled"
    c2p: bool = True  # content to position
    p2c: bool = True  # position to content
    p2p: bool = False  # position to position
    buckets: Annotated[ClippedDistances | LogBuckets, Field(discriminator="name")] = LogBuckets()
    projections: Literal["own", "shared"] = "shared"  # of the table, in each layer
    key_bias: bool = False  # with own projections: a bias in W_kr, as v2 stores it
    norm_table: bool = True  # LayerNorm on the table
    table_dropout: Annotated[float, Field(ge=0, lt=1)] = 0.0
    p2c_index: Literal["reference", "paper"] = "reference"
    scale_terms: PositiveInt | None = None  # s; None counts the terms that are on

    @model_validator(mode="after")
    def _has_a_term(self) -> "DisentangledConfig":
        if not self.term_names():
            raise ValueError("c2p, p2c and p2p are all off, so the table does nothing; use 'none'")
        if self.key_bias and not (self.projections == "own" and self.projected()[0]):
            raise ValueError(
                "key_bias belongs to the own projection of c2p or p2p; set projections: own, or leave "
                "it out"
            )
        return self

    def term_names(self) -> list[str]:
        """Return the position terms that are on."""
        return [name for name in ("c2p", "p2c", "p2p") if getattr(self, name)]

    def num_rows(self, dims: EncoderDims) -> int:
        """Return the rows of the table."""
        return dims.relation.table_rows(2 * self.buckets.span())

    def num_score_terms(self) -> int:
        """Return s, by which head_dim is multiplied in the scale."""
        return self.scale_terms or 1 + len(self.term_names())

    def projected(self) -> tuple[bool, bool]:
        """Return whether K_r and whether Q_r is needed."""
        return self.c2p or self.p2p, self.p2c or self.p2p

    @override
    def traits(self) -> Traits:
        relations = DISTANCES if self.p2c_index == "paper" else ANY_RELATION
        return Traits(adds_bias=True, reads_query=self.c2p, reads_key=self.p2c, relations=relations)

    @override
    def fresh_rows_beyond(self, trained: int) -> bool:
        reached, all_alike = torch.tensor([trained - 1, max(trained - 1, self.buckets.largest())])
        return bool(self.buckets.signed(reached) != self.buckets.signed(all_alike))

    @override
    def softmax_divisor(self, dims: EncoderDims) -> float:
        return float((self.num_score_terms() * dims.head_dim) ** 0.5)

    @override
    def card(self, dims: EncoderDims) -> Mapping[str, str]:
        fixed = "" if self.scale_terms is None else " (held fixed)"
        kept = "LayerNorm" if self.norm_table else "no norm"
        return {
            "positions": self.buckets.describe(),
            "terms": ", ".join(["c2c", *self.term_names()]),
            "p2c index": f"{self.p2c_index} ("
            + ("row of i - j)" if self.p2c_index == "reference" else "row of j - i)"),
            "scale": f"1 / sqrt({self.num_score_terms()} x {dims.head_dim}){fixed}",
            "table": f"{self.num_rows(dims)} x {dims.hidden_size}, one for all layers, {kept}, "
            f"{self.projections} projections",
        }

    @override
    def flops(self, dims: EncoderDims, num_queries: int, num_keys: int) -> Flops:
        reach = min(max(num_queries, num_keys) - 1, self.buckets.largest())
        rows = dims.relation.reached_rows(2 * self.buckets.span(), 2 * reach + 1)
        looked_up, width = rows + dims.relation.blank_rows(), dims.hidden_size
        return Flops(
            per_sequence=2 * looked_up * width * (self.c2p * num_queries + self.p2c * num_keys),
            per_forward=2 * rows * width * width * sum(self.projected()),
        )


class Rows(NamedTuple):
    """What one forward needs of the table: which rows, and which of them each pair has."""

    table: Float[Tensor, "buckets hidden"]
    buckets: tuple[Relation, ...]  # rows of query minus key
    mirrored: tuple[Relation, ...]  # rows Q_r is read at: the same, or of key minus query
    signed: Relation | None  # for the paper's index: distance bucketed, an odd function of it
    reach: int  # largest value of `signed`
    low: int  # first row of the whole table
    high: int  # last row of the whole table


class DisentangledLayer(nn.Module):
    """What each layer owns: W_kr and W_qr, unless the content projections serve."""

    def __init__(self, config: DisentangledConfig, dims: EncoderDims) -> None:
        """Build the projections that the active terms need."""
        super().__init__()
        self.dropout = nn.Dropout(config.table_dropout)
        self.key_cache, self.query_cache = WeightCache(), WeightCache()
        needs_key, needs_query = config.projected()
        if config.projections == "own" and needs_key:
            size = dims.hidden_size
            self.position_key_proj = nn.Linear(size, size, bias=config.key_bias)
        if config.projections == "own" and needs_query:
            self.position_query_proj = nn.Linear(dims.hidden_size, dims.hidden_size)


@final
@mechanisms.register("disentangled")
class DisentangledAttention(Mechanism[DisentangledConfig]):
    """Scores between content and relative position, each way, beside those between contents."""

    Config = DisentangledConfig

    def __init__(self, config: DisentangledConfig, dims: EncoderDims) -> None:
        """Build the table that all layers share."""
        super().__init__(config, dims)
        self.table = nn.Embedding(config.num_rows(dims), dims.hidden_size)
        if config.norm_table:
            self.table_norm = nn.LayerNorm(dims.hidden_size, eps=dims.norm_eps)

    @override
    def make_layer(self) -> DisentangledLayer:
        return DisentangledLayer(self.config, self.dims)

    @override
    def content_term(self) -> str:
        return "c2c"

    @override
    def prepare(self, geometry: Geometry) -> Rows:
        relation, signed = self.dims.relation, self.config.buckets.signed
        span, largest = self.config.buckets.span(), relation.largest(geometry)
        if largest is None or torch.compiler.is_compiling():  # a graph of all lengths has all rows
            reach = span
        else:
            reach = int(self._signed_reach(largest))
        low, high = max(span - reach, 0), min(span + reach, 2 * span - 1)
        buckets = relation.buckets(geometry, 2 * span, lambda at: self._row(signed(at)) - low)
        table = relation.reached(self.table.weight, low, high)
        if self.config.norm_table:
            table = self.table_norm(table)
        if not self._is_paper():
            return Rows(table, buckets, buckets, None, reach, low, high)
        mirrored = relation.buckets(geometry, 2 * span, lambda at: self._row(-signed(at)) - low)
        return Rows(table, buckets, mirrored, geometry.relation.mapped(signed), reach, low, high)

    @override
    def bias(self, site: Site) -> AttentionBias | None:
        rows, heads, layer = site.prepared, site.heads, site.layer
        assert isinstance(layer, DisentangledLayer)
        needs_key, needs_query = self.config.projected()
        key_HRD = query_HRD = None
        if needs_key:
            key_HRD = self._project(site, self._key_proj(site), layer.key_cache)
        if needs_query:
            query_HRD = self._project(site, self._query_proj(site), layer.query_cache)
        parts: list[AttentionBias] = []
        if self.config.c2p and key_HRD is not None:
            parts += query_products("c2p", heads.query, key_HRD, rows.buckets)
        if self.config.p2c and query_HRD is not None:
            parts += key_products("p2c", heads.key, query_HRD, rows.mirrored)
        if self.config.p2p and key_HRD is not None and query_HRD is not None:
            parts += self._position_to_position(query_HRD, key_HRD / site.scale, rows)
        return total_bias(parts)

    def _position_to_position(
        self,
        query: Float[Tensor, "heads buckets head_dim"],
        key: Float[Tensor, "heads buckets head_dim"],
        rows: Rows,
    ) -> list[AttentionBias]:
        if rows.signed is None:
            scores_HR = (query * key).sum(-1)
            return [BucketScores("p2p", scores_HR, bucket) for bucket in rows.buckets]
        signed = torch.arange(-rows.reach, rows.reach + 1, device=query.device)
        query_row, key_row = (self._row(side) - rows.low for side in (-signed, signed))
        scores_HR = (query[:, query_row] * key[:, key_row]).sum(-1)
        return [BucketScores("p2p", scores_HR, rows.signed.mapped(lambda at: at + rows.reach))]

    def _is_paper(self) -> bool:
        return self.config.p2c_index == "paper"

    def _row(self, signed: Int[Tensor, "*any"]) -> Int[Tensor, "*any"]:
        span = self.config.buckets.span()
        return (signed + span).clamp(0, 2 * span - 1)

    def _signed_reach(self, largest_distance: int) -> Tensor:
        distance = self.table.weight.new_tensor([largest_distance], dtype=torch.int64)
        return self.config.buckets.signed(distance)

    def _key_proj(self, site: Site) -> nn.Linear:
        if self.config.projections == "shared":
            return site.key_proj
        projection = site.layer.position_key_proj
        assert isinstance(projection, nn.Linear)
        return projection

    def _query_proj(self, site: Site) -> nn.Linear:
        if self.config.projections == "shared":
            return site.query_proj
        projection = site.layer.position_query_proj
        assert isinstance(projection, nn.Linear)
        return projection

    def _project(
        self, site: Site, projection: nn.Linear, cache: WeightCache
    ) -> Float[Tensor, "heads buckets head_dim"]:
        """Return the scaled projection of the reachable rows."""
        rows, layer = site.prepared, site.layer
        assert isinstance(layer, DisentangledLayer)

        def compute() -> Tensor:
            projected = site.scale * projection(layer.dropout(rows.table))
            projected_HRD = rearrange(projected, "r (h d) -> h r d", h=self.dims.num_heads)
            return self.dims.relation.with_blank(projected_HRD)

        if layer.training:  # some optimizers change weights without PyTorch's version counter
            cache.clear()
            return compute()
        weights = [*projection.parameters(), *self.parameters()]
        return cache.get(weights, compute, key=(rows.low, rows.high, site.scale))
