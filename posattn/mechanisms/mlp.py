"""A bias that a small network computes from the distance (continuous relative bias).

    bias[h, i, j] = f(x(p_i - p_j))_h,   f: 1 -> width -> .. -> width -> heads, `depth` hidden layers
    coordinate:  linear  x(d) = d
                 log     x(d) = sign(d) ln(1 + |d|)
                 swin    x(d) = sign(d) log2(1 + 8 |d| / max_distance) / log2(8)
    with a bound, the bias is bound * sigmoid(f)

Swin Transformer V2 (Liu et al. 2021, arXiv:2111.09883, section 3.3) has it for windows of images:
log-spaced coordinates, one hidden layer of ReLU, no bias at the output, bound 16, a network per block;
timm's RelPosMlp has that and its own forms `cr` (log, no bound) and `rw`. x-transformers' dynamic position
bias puts it on a line: linear or log, SiLU, two hidden layers of hidden_size / 4, one network for all layers,
optional LayerNorms (the first without bias there). Defaults are x-transformers'; both read query minus key.
timm's dropout of 0.125 inside the network is left out.
"""

import math
from collections.abc import Mapping
from itertools import pairwise
from typing import Literal, NamedTuple, final

from jaxtyping import Float
from pydantic import PositiveFloat, PositiveInt, model_validator
from torch import Tensor, nn
from torch.nn import functional
from typing_extensions import override

from posattn.bias import AttentionBias, BucketScores
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
from posattn.positions import Relation


class MLPBiasConfig(MechanismConfig):
    """Options of the continuous relative bias."""

    name: Literal["mlp"] = "mlp"
    coordinate: Literal["linear", "log", "swin"] = "linear"  # what the network reads
    max_distance: PositiveInt | None = None  # of training; with coordinate swin, and only there
    width: PositiveInt | None = None  # None: a quarter of hidden_size
    depth: PositiveInt = 2  # hidden layers
    activation: Literal["silu", "relu"] = "silu"
    norm: bool = False  # a LayerNorm before each activation
    output_bias: bool = True
    bound: PositiveFloat | None = None  # bias = bound x sigmoid; None: no bound
    share: Literal["encoder", "layer"] = "encoder"  # one network for all layers, or one for each

    @model_validator(mode="after")
    def _max_distance_is_swins(self) -> "MLPBiasConfig":
        if (self.coordinate == "swin") != (self.max_distance is not None):
            raise ValueError(
                "max_distance scales coordinate: swin, which needs it, and no other coordinate"
            )
        return self

    def inner_width(self, dims: EncoderDims) -> int:
        """Return the width of the hidden layers."""
        return self.width or max(dims.hidden_size // 4, 1)

    @override
    def traits(self) -> Traits:
        return Traits(adds_bias=True, relations=("line", "grid", "distances"))

    @override
    def card(self, dims: EncoderDims) -> Mapping[str, str]:
        width = self.inner_width(dims)
        reads = {
            "linear": "the distance",
            "log": "sign(d) ln(1 + |d|)",
            "swin": f"the distance over {self.max_distance}, log-spaced",
        }
        bound = "no bound" if self.bound is None else f"{self.bound:g} x sigmoid"
        return {
            "positions": f"a network reads {reads[self.coordinate]}, unlimited",
            "network": f"{dims.relation.num_axes}{f' -> {width}' * self.depth} -> {dims.num_heads}, "
            + self.activation
            + (", layer norms" if self.norm else "")
            + f", {bound}, "
            + ("shared by all layers" if self.share == "encoder" else "own in each layer"),
        }

    @override
    def flops(self, dims: EncoderDims, num_queries: int, num_keys: int) -> Flops:
        width, inputs = self.inner_width(dims), dims.relation.num_axes
        rows = dims.relation.count_values(2 * max(num_queries, num_keys) - 1)
        network = 2 * rows * width * (inputs + (self.depth - 1) * width + dims.num_heads)
        if self.share == "encoder":
            return Flops(per_prepare=network)
        return Flops(per_forward=network)


class DistanceNetwork(nn.Module):
    """From a coordinate of the distance to a bias for each head."""

    def __init__(self, config: MLPBiasConfig, dims: EncoderDims) -> None:
        """Build the projections."""
        super().__init__()
        width = config.inner_width(dims)
        widths = [dims.relation.num_axes] + [width] * config.depth
        self.inner = nn.ModuleList(nn.Linear(before, after) for before, after in pairwise(widths))
        self.norms = nn.ModuleList(
            nn.LayerNorm(width) if config.norm else nn.Identity() for _ in self.inner
        )
        self.activation = nn.SiLU() if config.activation == "silu" else nn.ReLU()
        self.output = nn.Linear(width, dims.num_heads, bias=config.output_bias)
        self.bound = config.bound

    def forward(self, coordinate: Float[Tensor, "buckets axes"]) -> Float[Tensor, "heads buckets"]:
        """Return the bias of each head at each coordinate."""
        states = coordinate.to(self.output.weight.dtype)
        for inner, norm in zip(self.inner, self.norms, strict=True):
            states = self.activation(norm(inner(states)))
        scores: Tensor = self.output(states)
        if self.bound is not None:
            scores = self.bound * scores.sigmoid()
        return scores.T


class Distances(NamedTuple):
    """Coordinates of all distances that occur or the scores there, and which of them each pair has."""

    coordinate: Float[Tensor, "buckets axes"]
    scores: Float[Tensor, "heads buckets"] | None  # if all layers share them
    bucket: Relation
    blanks: int  # buckets after those, of pairs without a bias


@final
@mechanisms.register("mlp")
class MLPBias(Mechanism[MLPBiasConfig]):
    """A network's bias at each distance."""

    Config = MLPBiasConfig

    def __init__(self, config: MLPBiasConfig, dims: EncoderDims) -> None:
        """Build the network, unless each layer has its own."""
        super().__init__(config, dims)
        if config.share == "encoder":
            self.network = DistanceNetwork(config, dims)

    @override
    def make_layer(self) -> nn.Module:
        if self.config.share == "layer":
            return DistanceNetwork(self.config, self.dims)
        return super().make_layer()

    @override
    def prepare(self, geometry: Geometry) -> Distances:
        found = self.dims.relation.values(geometry)
        coordinate = self._coordinate(found.values.double())
        scores = self.network(coordinate) if self.config.share == "encoder" else None
        return Distances(coordinate, scores, found.which, found.blanks)

    @override
    def bias(self, site: Site) -> AttentionBias:
        prepared: Distances = site.prepared
        scores = prepared.scores
        if scores is None:
            scores = site.layer(prepared.coordinate)
        return BucketScores(
            "distance", functional.pad(scores, (0, prepared.blanks)), prepared.bucket
        )

    def _coordinate(self, distance: Float[Tensor, "buckets axes"]) -> Float[Tensor, "buckets axes"]:
        if self.config.max_distance is not None:
            spaced = (1.0 + 8.0 * distance.abs() / self.config.max_distance).log2()
            return distance.sign() * spaced / math.log2(8)
        if self.config.coordinate == "log":
            return distance.sign() * distance.abs().log1p()
        return distance
