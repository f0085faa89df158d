"""FIRE, functional interpolation for relative positions (Li et al. 2024, arXiv:2310.04418, section 3).

    causal:  bias[h, i, j] = f_h(r),  r = psi(i - j) / psi(max(L, i)),   psi(x) = ln(c x + 1),  j <= i

f is a small network with ReLU from one number to one per head: `hidden_layers` layers of `hidden_width`
(the paper: two of 32). c > 0 and L > 0 are learned. Dividing by the query's own position keeps r within
0..1 however long the text; below the threshold L the divisor is constant, so short texts are told apart
by distance alone. Each layer has its own f, c and L (the paper's FIRE) or all share one, computed once
per forward (`shared: true`, its FIRE-S).

The divisor is the paper's under a causal mask only: with keys to the right, |i - j| exceeds i. There is no
published two-sided form. Two are offered, and in both the larger position of the pair takes the place of i:

    r = psi(|i - j|) / psi(max(L, i, j))
    signed:      bias[h, i, j] = f_h(sign(i - j) r)       one input; left and right meet at distance 0
    sign_input:  bias[h, i, j] = f_h(r, sign(i - j))      two inputs; left and right may jump apart

Why so: r stays within -1..1; for keys to the left `signed` is the published function, number for number;
and the bias of a pair depends on that pair alone, so padding, packing and the choice of queries change
nothing, which a divisor with the length of the text (psi(max(L, N - 1))) would not give. `signed` is the
default, as the published network fits it. Positions count from 0, as the row index of the causal form.

Against the paper: it has no released code. DAPE's authors wrote a version with one hidden layer, c and L
behind absolute values (zero gradient at 0, and signs that flip) and 1e-6 added to the divisor; the last is
kept here. c and L are exponentials of parameters here: every value is legal and has a gradient. First
values are DAPE's: c = 0.1, L = 512, linear layers as PyTorch starts them. Logarithms are computed in
float32 or better.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal, NamedTuple, TypeAlias, final

import torch
from jaxtyping import Float, Int
from pydantic import PositiveFloat, PositiveInt
from torch import Tensor, nn
from torch.nn import functional
from typing_extensions import override

from posattn.bias import BucketScores, Causal, VisibilityRule
from posattn.lazy import cached_property
from posattn.mechanisms.base import (
    EncoderDims,
    FanInLinear,
    Flops,
    Geometry,
    Mechanism,
    MechanismConfig,
    Site,
    Traits,
    mechanisms,
)
from posattn.positions import GivenPairs, Relation

EPS = 1e-6  # of the divisor
Grid: TypeAlias = Int[Tensor, "queries keys"]


class FireConfig(MechanismConfig):
    """Options of FIRE."""

    name: Literal["fire"] = "fire"
    form: Literal["signed", "sign_input", "causal"] = "signed"
    shared: bool = False  # one network for all layers (FIRE-S)
    hidden_layers: PositiveInt = 2
    hidden_width: PositiveInt = 32
    first_c: PositiveFloat = 0.1
    first_threshold: PositiveFloat = 512.0  # L, in positions

    def widths(self, num_heads: int) -> list[int]:
        """Return the numbers that go into each linear layer, and that come out of the last."""
        inputs = 2 if self.form == "sign_input" else 1
        return [inputs, *[self.hidden_width] * self.hidden_layers, num_heads]

    @override
    def traits(self) -> Traits:
        return Traits(adds_bias=True, translation_invariant=False, causal=self.form == "causal")

    @override
    def card(self, dims: EncoderDims) -> Mapping[str, str]:
        divisor = "the query's position" if self.form == "causal" else "the pair's larger position"
        widths = " x ".join(map(str, self.widths(dims.num_heads)))
        return {
            "positions": f"log distance over log of {divisor}, form {self.form}, unlimited",
            "threshold": f"L starts at {self.first_threshold:g}, c at {self.first_c:g}, both learned",
            "network": f"{widths}, "
            + ("one for all layers" if self.shared else "own in each layer"),
        }

    @override
    def flops(self, dims: EncoderDims, num_queries: int, num_keys: int) -> Flops:
        widths = self.widths(dims.num_heads)
        products = sum(a * b for a, b in pairwise(widths))
        cost = 2 * num_queries * num_keys * products  # if all sequences have the same positions
        return Flops(per_encoder=cost) if self.shared else Flops(per_forward=cost)


class FireNetwork(nn.Module):
    """f, c and L: from the distance and the divisor's position of each pair to the bias of each head."""

    def __init__(self, config: FireConfig, dims: EncoderDims) -> None:
        """Build the layers, and the logarithms of c and L."""
        super().__init__()
        self.form = config.form
        widths = config.widths(dims.num_heads)
        self.linears = nn.ModuleList(FanInLinear(a, b) for a, b in pairwise(widths))
        self.log_c = nn.Parameter(torch.tensor(config.first_c).log())
        self.log_threshold = nn.Parameter(torch.tensor(config.first_threshold).log())

    def forward(self, distance: Grid, place: Grid) -> Float[Tensor, "heads queries keys"]:
        """Return the bias of each pair, given its distance and the position in its divisor."""
        exact = torch.promote_types(self.log_c.dtype, torch.float32)
        c, threshold = self.log_c.to(exact).exp(), self.log_threshold.to(exact).exp()
        divisor = torch.log1p(c * torch.maximum(place.to(exact), threshold)) + EPS
        ratio, sign = torch.log1p(c * distance.abs()) / divisor, distance.sign()
        if self.form == "sign_input":
            inputs = [ratio, sign.to(exact)]
        else:
            inputs = [ratio * sign if self.form == "signed" else ratio]
        states = torch.stack(inputs, dim=-1).to(self.log_c.dtype)
        for index, linear in enumerate(self.linears):
            states = linear(states if index == 0 else functional.relu(states))
        return states.permute(2, 0, 1)


class Distinct(NamedTuple):
    """The positions that occur in a batch, each once, and where among them every token's is."""

    positions: Int[Tensor, " distinct"]
    which: Int[Tensor, "#batch length"]


def distinct(positions: Int[Tensor, "#batch length"], reach: int | None) -> Distinct:
    """Return the distinct positions; those of a single sequence are taken to be so already.

    Positions count from 0 to a known `reach`, and padding has -1: a traced graph, which cannot look
    for them, takes all of these.
    """
    if positions.shape[0] == 1:
        return Distinct(
            positions[0], torch.arange(positions.shape[1], device=positions.device)[None]
        )
    if reach is not None and torch.compiler.is_compiling():
        return Distinct(torch.arange(-1, reach + 1, device=positions.device), positions + 1)
    return Distinct(*positions.unique(return_inverse=True))


@dataclass(frozen=True)
class Places:
    """Each pair of positions that occurs, once, and which of them each query and key is.

    Sequences of a batch differ in padding, if at all; so the network runs on few pairs and not on all.
    """

    distance: Grid
    place: Grid
    bucket: Relation
    shared: FireNetwork | None

    def bias(self, network: nn.Module) -> BucketScores:
        """Return the bias that a network makes of the pairs."""
        scores_HR = network(self.distance, self.place).flatten(1)
        return BucketScores("distance", scores_HR, self.bucket, shared=self.shared is not None)

    @cached_property
    def shared_bias(self) -> BucketScores:
        """Return the bias of the network of all layers, computed when the first of them asks."""
        assert self.shared is not None
        return self.bias(self.shared)


@final
@mechanisms.register("fire")
class Fire(Mechanism[FireConfig]):
    """A learned function of the distance relative to how far into the text the pair is."""

    Config = FireConfig

    def __init__(self, config: FireConfig, dims: EncoderDims) -> None:
        """Build the network, if all layers share one."""
        super().__init__(config, dims)
        self.network = FireNetwork(config, dims) if config.shared else None

    @override
    def make_layer(self) -> nn.Module:
        return nn.Module() if self.config.shared else FireNetwork(self.config, self.dims)

    @override
    def prepare(self, geometry: Geometry) -> Places:
        query = distinct(geometry.query_positions, geometry.reach)
        key = distinct(geometry.key_positions, geometry.reach)
        distance = query.positions[:, None] - key.positions
        place = query.positions[:, None].expand_as(distance)
        if self.config.form != "causal":
            place = torch.maximum(place, key.positions)
        bucket = query.which[:, :, None] * key.positions.shape[0] + key.which[:, None]
        return Places(distance, place, GivenPairs(bucket), self.network)

    @override
    def bias(self, site: Site) -> BucketScores:
        places: Places = site.prepared
        return places.shared_bias if self.config.shared else places.bias(site.layer)

    @override
    def visibility(self, geometry: Geometry) -> tuple[VisibilityRule, ...]:
        return (Causal(geometry.distance),) if self.config.form == "causal" else ()
