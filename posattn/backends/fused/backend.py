"""`fused`: scores, bias, softmax and values in one C++ operator; no tensor of all pairs on the way."""

from typing import ClassVar, final

import torch
from torch import Tensor
from typing_extensions import override

from posattn.backends.base import AttentionBackend, AttentionCall, backends
from posattn.backends.fused.library import NativeLibrary
from posattn.backends.fused.parts import NO_LOOKUP, BiasParts
from posattn.shapes import QueryHeads

DTYPES = (torch.float32, torch.float64, torch.bfloat16, torch.float16)


@final
@backends.register("fused")
class FusedBackend(AttentionBackend):
    """One pass over tiles of queries and keys on the CPU, forward and backward, for every bias.

    Half precision is computed in float32. The operator is compiled when the first call asks for it.
    """

    name: ClassVar[str] = "fused"

    def __init__(self) -> None:
        """Compile nothing yet."""
        self.library = NativeLibrary()

    @override
    def refusals(self, call: AttentionCall) -> list[str]:
        query = call.query
        reasons = []
        if query.device.type != "cpu":
            reasons.append(f"it runs on the CPU, not on '{query.device.type}'")
        if query.dtype not in DTYPES:
            reasons.append(
                f"it computes floating-point numbers of 16 to 64 bits, not {query.dtype}"
            )
        if call.relative_values is not None:
            reasons.append(
                "it never forms the probabilities that relative values need (eager does)"
            )
        if torch.compiler.is_exporting():
            reasons.append("exported programs keep to PyTorch's own operators")
        if not reasons and (problem := self.library.problem()) is not None:
            reasons.append(problem)
        return reasons

    @override
    def rank(self, call: AttentionCall) -> int:
        return 5 if call.bias is not None else 20

    @override
    def run(self, call: AttentionCall) -> QueryHeads:
        parts = BiasParts()
        for part in call.bias.factored() if call.bias is not None else ():
            parts.add(part)
        batch, heads = call.query.shape[:2]
        by_query = parts.query.tensors(batch, heads) if parts.query else NO_LOOKUP
        by_key = parts.key.tensors(batch, heads) if parts.key else NO_LOOKUP
        by_distance, dense, places = parts.by_distance, parts.dense, parts.distances
        seen = call.visibility.by_token
        query_documents, key_documents = seen.documents or (None, None)
        attended: Tensor
        attended, _ = torch.ops.posattn.fused_attention(
            call.query,
            call.key,
            call.value,
            call.scale,
            None if places is None else places.query_positions,
            None if places is None else places.key_positions,
            *by_query,
            *by_key,
            None if by_distance is None else by_distance.expand(heads, -1),
            dense,
            seen.keys,
            query_documents,
            key_documents,
            None if seen.distance is None else seen.distance.query_positions,
            None if seen.distance is None else seen.distance.key_positions,
            seen.limits,
            seen.pairs,
            call.dropout,
            _seed() if call.dropout else None,
        )
        return attended


def _seed() -> Tensor:
    """Return a number from torch's generator on the CPU, from which the operator takes all its chance."""
    return torch.randint(2**62, (1,), device="cpu")
