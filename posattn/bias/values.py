"""What position adds to the attended values (the value term of Shaw et al. 2018)."""

from dataclasses import dataclass
from typing import final

from jaxtyping import Float
from torch import Tensor

from posattn.positions import Relation
from posattn.shapes import QueryHeads


@final
@dataclass(frozen=True)
class RelativeValues:
    """`sum_j probs[b, h, i, j] * table[bucket[b, i, j]]` is added to the attended values, for each bucket."""

    table: Float[Tensor, "*heads buckets head_dim"]
    buckets: tuple[Relation, ...]

    def attended(self, probs: Float[Tensor, "batch heads query key"]) -> QueryHeads:
        """Return the addition; probabilities are first summed by bucket, so no Q x K x D tensor exists."""
        batch, heads, num_queries, _ = probs.shape
        by_bucket = probs.new_zeros(batch, heads, num_queries, self.table.shape[-2])
        for bucket in self.buckets:
            by_bucket = by_bucket.scatter_add(-1, bucket.pairs[:, None].expand_as(probs), probs)
        return by_bucket @ self.table.to(probs.dtype)
