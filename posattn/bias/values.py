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
    """`sum_j probs[b, h, i, j] * table[bucket[b, i, j]]` is added to the attended values."""

    table: Float[Tensor, "buckets head_dim"]
    bucket: Relation

    def attended(self, probs: Float[Tensor, "batch heads query key"]) -> QueryHeads:
        """Return the addition; probabilities are first summed by bucket, so no Q x K x D tensor exists."""
        batch, heads, num_queries, _ = probs.shape
        bucket_BHQK = self.bucket.pairs[:, None].expand_as(probs)
        by_bucket = probs.new_zeros(batch, heads, num_queries, self.table.shape[0])
        return by_bucket.scatter_add(-1, bucket_BHQK, probs) @ self.table.to(probs.dtype)
