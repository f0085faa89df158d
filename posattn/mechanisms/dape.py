"""Data-adaptive positional encoding, DAPE, over any bias (Zheng et al. 2024, arXiv:2405.14722).

    logits = A + B + f(A, B),   A = scale * q_i . k_j,   B the wrapped mechanism's bias
    f: 2 heads -> width -> heads, LeakyReLU (slope 0.01), applied to each pair (i, j) by itself, reading A
       and B of all heads

The network lets content change what position adds, and heads see each other's logits. It is each layer's
own, with biases. Terms keep the names that they have in the wrapped mechanism, and f is `dape`.

The authors' code (chuanyang-Zheng/DAPE, DAPE.py) has a class for each of ALiBi, KERPLE and FIRE; width is
32 there. It is causal through the bias's own triangle and the mask; f is pointwise, so nothing changes for
both directions. A reads queries and keys before any rotation, and is computed a second time for f. DAPE V2
(arXiv:2410.04798), which convolves along keys, is left out.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Literal, final

import torch
from einops import rearrange
from pydantic import Field, PositiveInt
from torch import Tensor, nn
from typing_extensions import override

from posattn.bias import AttentionBias, DenseBias, RelativeValues, SumBias
from posattn.mechanisms.base import (
    EncoderDims,
    Flops,
    InnerMechanismConfig,
    MechanismConfig,
    Site,
    Traits,
    mechanisms,
)
from posattn.mechanisms.wrapper import Wrapper, WrapperConfig
from posattn.shapes import Logits


class DAPEConfig(WrapperConfig):
    """Options of data-adaptive positional encoding."""

    name: Literal["dape"] = "dape"
    mechanism: InnerMechanismConfig = Field(default={"name": "alibi"}, validate_default=True)
    width: PositiveInt = 32  # of the network's hidden layer

    @override
    def traits(self) -> Traits:
        return replace(super().traits(), reads_query=True, reads_key=True)

    @override
    def problems(self, dims: EncoderDims) -> list[str]:
        inner: MechanismConfig = self.mechanism
        problems, traits = super().problems(dims), inner.traits()
        if not traits.adds_bias:
            problems.append(
                f"dape adapts a bias, but '{inner.name}' adds none to the logits; wrap one that does "
                "(alibi, disentangled, ..)"
            )
        if traits.places:
            problems.append(f"dape cannot wrap '{inner.name}', which chooses positions")
        return problems

    @override
    def card(self, dims: EncoderDims) -> Mapping[str, str]:
        return {
            **super().card(dims),
            "adapted by": f"a network over logits and bias of all heads, {2 * dims.num_heads} -> "
            f"{self.width} -> {dims.num_heads}, own in each layer",
        }

    @override
    def flops(self, dims: EncoderDims, num_queries: int, num_keys: int) -> Flops:
        inner = super().flops(dims, num_queries, num_keys)
        each_pair = 2 * dims.hidden_size + 2 * 3 * dims.num_heads * self.width
        added = num_queries * num_keys * each_pair
        return inner._replace(per_sequence=inner.per_sequence + added)


class DAPELayer(nn.Module):
    """What each layer owns: the network, and the wrapped mechanism's part."""

    def __init__(self, config: DAPEConfig, dims: EncoderDims, wrapped: nn.Module) -> None:
        """Build the network."""
        super().__init__()
        self.wrapped = wrapped
        self.inner = nn.Linear(2 * dims.num_heads, config.width)
        self.activation = nn.LeakyReLU()
        self.output = nn.Linear(config.width, dims.num_heads)

    def forward(self, logits: Logits, bias: Logits) -> Logits:
        """Return f of the logits and the bias, both of all heads."""
        both_BQKH = rearrange(torch.cat([logits, bias], dim=1), "b h q k -> b q k h")
        found: Tensor = self.output(self.activation(self.inner(both_BQKH)))
        return rearrange(found, "b q k h -> b h q k")


@final
@mechanisms.register("dape")
class DAPE(Wrapper[DAPEConfig]):
    """Another mechanism's bias, and what a network makes of it and of the logits."""

    Config = DAPEConfig

    @override
    def make_layer(self) -> DAPELayer:
        return DAPELayer(self.config, self.dims, super().make_layer())

    @override
    def bias(self, site: Site) -> AttentionBias:
        layer = site.layer
        assert isinstance(layer, DAPELayer)
        bias = super().bias(replace(site, layer=layer.wrapped))
        assert bias is not None
        bias = SumBias(tuple(DenseBias(name, term) for name, term in bias.terms().items()))
        logits_BHQK = (site.heads.query * site.scale) @ site.heads.key.mT
        whole_BHQK = bias.materialize().to(logits_BHQK.dtype).expand_as(logits_BHQK)
        return SumBias((bias, DenseBias("dape", layer(logits_BHQK, whole_BHQK))))

    @override
    def relative_values(self, site: Site) -> RelativeValues | None:
        layer = site.layer
        assert isinstance(layer, DAPELayer)
        return super().relative_values(replace(site, layer=layer.wrapped))
