"""PyTorch's scaled_dot_product_attention, with bias and visibility as its additive mask."""

from typing import ClassVar, final

import torch
from torch import Tensor
from torch.nn import functional
from typing_extensions import override

from posattn.backends.base import AttentionBackend, AttentionCall, backends
from posattn.shapes import QueryHeads


@final
@backends.register("sdpa")
class SDPABackend(AttentionBackend):
    """Fused where PyTorch has a kernel for the call; the bias is one dense tensor all the same."""

    name: ClassVar[str] = "sdpa"

    @override
    def refusals(self, call: AttentionCall) -> list[str]:
        if call.relative_values is not None:
            return ["it never forms the probabilities that relative values need (eager does)"]
        return []

    @override
    def rank(self, call: AttentionCall) -> int:
        return 10

    @override
    def run(self, call: AttentionCall) -> QueryHeads:
        return functional.scaled_dot_product_attention(
            call.query,
            call.key,
            call.value,
            attn_mask=_additive_mask(call),
            dropout_p=call.dropout,
            scale=call.scale,
        )


def _additive_mask(call: AttentionCall) -> Tensor | None:
    """Return the bias with minus infinity at invisible keys, or booleans if there is no bias."""
    visible = call.visibility.pairs
    if call.bias is None:
        return visible
    bias = call.bias.materialize().to(call.query.dtype)
    if visible is None:
        return bias
    return bias.masked_fill(~visible, -torch.inf)
