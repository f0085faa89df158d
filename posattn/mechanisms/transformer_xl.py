"""Relative positions of Transformer-XL (Dai et al. 2019, arXiv:1901.02860, section 3.3).

    logits[i, j] = (q_i . k_j  +  q_i . W_r R[d]  +  u . k_j  +  v . W_r R[d]) / sqrt(head_dim)
                      (a)            (b)              (c)          (d)
                   + (q_i + s) . g[0 if i and j are of one segment else 1] / sqrt(head_dim)     `segment_term`
                      (e)

with d = p_i - p_j and R[d] = [sin(d w_0), .. , cos(d w_0), ..], concatenated, w_t = base ** (-2 t /
hidden_size). W_r is each layer's own, without bias; u and v are shared by all layers unless `untie`
(XLNet's untie_r). Memory: each layer sees the last `memory_length` inputs it had in earlier segments
of the same stream, detached, as further keys and values.

Term (e) is XLNet's (Yang et al. 2019, arXiv:1906.08237, section 2.5): it says whether two tokens are of
the same segment (token type), and not which segments these are. g are two vectors per head, each
layer's own; s is a vector per head that goes with u and v, shared unless `untie`. Without segment ids all
tokens are of one segment: the term is then the same for all keys, which softmax does not see, and left out.
Remembered tokens count as segment 0, as in the released code.

Against the released code: it is causal, and its relative shift is right only where j <= i; here each
pair looks up its own distance, which serves both directions (`bidirectional`, the default, as XLNet's
attention type "bi") and any number of queries and keys. `bidirectional: false` hides later keys.
"""

from collections.abc import Mapping
from typing import Annotated, Literal, NamedTuple, final

import torch
from einops import rearrange
from jaxtyping import Float
from pydantic import Field, NonNegativeInt, PositiveFloat, PositiveInt
from torch import Tensor, nn
from typing_extensions import override

from posattn.bias import (
    AttentionBias,
    BucketScores,
    Causal,
    DenseBias,
    QueryProducts,
    SumBias,
    VisibilityRule,
)
from posattn.mechanisms.base import (
    DISTANCES,
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
from posattn.mechanisms.weight_cache import WeightCache
from posattn.positions import GivenPairs, Relation, clipped, sinusoids


class TransformerXLConfig(MechanismConfig):
    """Options of Transformer-XL's relative positions."""

    name: Literal["transformer_xl"] = "transformer_xl"
    bidirectional: bool = True  # false: keys after the query are invisible
    memory_length: NonNegativeInt = 0  # states of earlier segments that each layer keeps
    clamp_distance: PositiveInt | None = None  # distances beyond share the outermost sinusoid
    base: PositiveFloat = 10000.0
    untie: bool = False  # each layer has its own u and v
    table_dropout: Annotated[float, Field(ge=0, lt=1)] = 0.0  # on R, afresh in every layer
    segment_term: bool = False  # term (e): whether query and key are of the same segment

    @override
    def traits(self) -> Traits:
        relations = DISTANCES if self.bidirectional and not self.memory_length else LINE
        return Traits(
            adds_bias=True,
            causal=not self.bidirectional,
            reads_query=True,
            reads_segments=self.segment_term,
            relations=relations,
        )

    @override
    def card(self, dims: EncoderDims) -> Mapping[str, str]:
        limit = "unlimited" if self.clamp_distance is None else f"clipped at {self.clamp_distance}"
        return {
            "positions": f"sinusoids of the distance, base {self.base:g}, {limit}, "
            + ("both directions" if self.bidirectional else "causal"),
            "terms": "a (content), b (content to distance), c (u, global content), "
            "d (v, global distance)" + (", e (same segment or not)" if self.segment_term else ""),
            "u and v": "own in each layer" if self.untie else "shared by all layers",
            "memory": f"{self.memory_length} states per layer",
        }

    @override
    def flops(self, dims: EncoderDims, num_queries: int, num_keys: int) -> Flops:
        rows = 2 * max(num_queries, num_keys) - 1  # the table has both directions
        if self.clamp_distance is not None:
            rows = min(rows, 2 * self.clamp_distance + 1)
        width = dims.hidden_size
        of_segments = 4 * num_queries * width if self.segment_term else 0
        return Flops(
            per_sequence=2 * num_queries * rows * width + 2 * num_keys * width + of_segments,
            per_forward=2 * rows * width * (width + 1),
        )

    @override
    def memory(self) -> int:
        return self.memory_length


class Distances(NamedTuple):
    """Sinusoids of every distance that occurs, and which of their rows each pair has.

    `differs` is 1 where query and key are of different segments; None where all are of one.
    """

    table: Float[Tensor, "buckets hidden"]
    bucket: Relation
    differs: Relation | None


class GlobalBiases(nn.Module):
    """u and v of the paper, and XLNet's s with a segment term, a vector per head each."""

    def __init__(self, config: TransformerXLConfig, dims: EncoderDims) -> None:
        """Build them as tables, so that they are initialised as all tables are."""
        super().__init__()
        self.content = nn.Embedding(dims.num_heads, dims.head_dim)
        self.distance = nn.Embedding(dims.num_heads, dims.head_dim)
        if config.segment_term:
            self.segment = nn.Embedding(dims.num_heads, dims.head_dim)


class TransformerXLLayer(nn.Module):
    """What each layer owns: W_r, g with a segment term, and u, v and s if they are untied."""

    def __init__(self, config: TransformerXLConfig, dims: EncoderDims) -> None:
        """Build the projection of sinusoids."""
        super().__init__()
        self.distance_proj = nn.Linear(dims.hidden_size, dims.hidden_size, bias=False)
        self.dropout = nn.Dropout(config.table_dropout)
        self.cache = WeightCache()
        if config.segment_term:
            self.segments = nn.Embedding(2, dims.hidden_size)
        if config.untie:
            self.global_biases = GlobalBiases(config, dims)


@final
@mechanisms.register("transformer_xl")
class TransformerXL(Mechanism[TransformerXLConfig]):
    """Scores of projected sinusoids of the distance, and global biases for content and distance."""

    Config = TransformerXLConfig

    def __init__(self, config: TransformerXLConfig, dims: EncoderDims) -> None:
        """Build u and v, unless each layer has its own."""
        super().__init__(config, dims)
        if not config.untie:
            self.global_biases = GlobalBiases(config, dims)

    @override
    def make_layer(self) -> TransformerXLLayer:
        return TransformerXLLayer(self.config, self.dims)

    @override
    def content_term(self) -> str:
        return "a"

    @override
    def prepare(self, geometry: Geometry) -> Distances:
        reach = geometry.relation.largest
        if self.config.clamp_distance is not None:
            reach = min(reach, self.config.clamp_distance)
        bucket = geometry.relation.mapped(lambda distance: clipped(distance, reach) + reach)
        rows = torch.arange(-reach, reach + 1, device=geometry.query_positions.device)
        width = self.dims.hidden_size
        table = sinusoids(rows, width, self.config.base, "concatenated")
        return Distances(table, bucket, self._differs(geometry))

    @override
    def bias(self, site: Site) -> AttentionBias:
        layer, heads = site.layer, site.heads
        assert isinstance(layer, TransformerXLLayer)
        shared = layer.global_biases if self.config.untie else self.global_biases
        table_HRD = self._project(site.prepared.table, layer)
        content_HD, distance_HD = shared.content.weight, shared.distance.weight
        key_BH1K = torch.einsum("hd,bhkd->bhk", content_HD * site.scale, heads.key)[:, :, None]
        bucket_HR = torch.einsum("hd,hrd->hr", distance_HD * site.scale, table_HRD)
        bucket = site.prepared.bucket
        terms: list[AttentionBias] = [
            QueryProducts("b", heads.query, table_HRD * site.scale, bucket),
            DenseBias("c", key_BH1K),
            BucketScores("d", bucket_HR, bucket),
        ]
        if site.prepared.differs is not None:
            terms.append(self._segment_term(site, layer, shared))
        return SumBias(tuple(terms))

    @override
    def visibility(self, geometry: Geometry) -> tuple[VisibilityRule, ...]:
        return () if self.config.bidirectional else (Causal(geometry.distance),)

    def _differs(self, geometry: Geometry) -> Relation | None:
        of_query, of_key = geometry.query_segments, geometry.key_segments
        if not self.config.segment_term or of_query is None or of_key is None:
            return None
        return GivenPairs((of_query[:, :, None] != of_key[:, None, :]).long())

    def _segment_term(
        self, site: Site, layer: TransformerXLLayer, biases: GlobalBiases
    ) -> AttentionBias:
        both_HSD = rearrange(layer.segments.weight, "s (h d) -> h s d", h=self.dims.num_heads)
        query_BHQD = site.heads.query + biases.segment.weight[:, None]
        return QueryProducts("e", query_BHQD, both_HSD * site.scale, site.prepared.differs)

    def _project(
        self, table: Float[Tensor, "buckets hidden"], layer: TransformerXLLayer
    ) -> Float[Tensor, "heads buckets head_dim"]:
        def compute() -> Tensor:
            rows = table.to(layer.distance_proj.weight.dtype)
            projected: Tensor = layer.distance_proj(layer.dropout(rows))
            return rearrange(projected, "r (h d) -> h r d", h=self.dims.num_heads)

        if layer.training:  # some optimizers change weights without PyTorch's version counter
            layer.cache.clear()
            return compute()
        # the rows are sinusoids of -reach .. reach, so their number says which they are
        return layer.cache.get([layer.distance_proj.weight], compute, key=table.shape[0])
