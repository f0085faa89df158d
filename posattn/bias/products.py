"""A bias looked up by bucket in products of tokens with a table (DeBERTa, Shaw, Transformer-XL)."""

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import final

from jaxtyping import Float
from torch import Tensor
from typing_extensions import override

from posattn.bias.base import AttentionBias, ScoreMod
from posattn.bias.gathered import KeyScores, QueryScores
from posattn.positions import Relation
from posattn.shapes import KeyHeads, Logits, QueryHeads

Table = Float[Tensor, "heads buckets head_dim"]


class TableProducts(AttentionBias):
    """Products of tokens with a table, looked up by bucket; what they are is said by their `scores`."""

    table: Table

    @property
    @abstractmethod
    def tokens(self) -> QueryHeads | KeyHeads:
        """Return the tokens that are multiplied with the table."""

    @abstractmethod
    def scores(self) -> QueryScores | KeyScores:
        """Return the scores of every token for every bucket."""

    @override
    def parts(self) -> tuple[AttentionBias, ...]:
        return (self.scores(),)

    @override
    def factored(self) -> tuple[AttentionBias, ...]:
        return (self,)

    @override
    def learns(self) -> bool:
        return self.tokens.requires_grad or self.table.requires_grad

    @override
    def materialize(self) -> Logits:
        return self.scores().materialize()

    @override
    def terms(self) -> Mapping[str, Logits]:
        return self.scores().terms()

    @override
    def score_mod(self) -> ScoreMod:
        return self.scores().score_mod()


@final
@dataclass(frozen=True)
class QueryProducts(TableProducts):
    """`bias[b, h, i, j] = query[b, h, i] . table[h, bucket[b, i, j]]`: `QueryScores` not multiplied yet."""

    name: str
    query: QueryHeads
    table: Table
    bucket: Relation

    @property
    @override
    def tokens(self) -> QueryHeads:
        return self.query

    @override
    def scores(self) -> QueryScores:
        return QueryScores(self.name, self.query @ self.table.mT, self.bucket)


@final
@dataclass(frozen=True)
class KeyProducts(TableProducts):
    """`bias[b, h, i, j] = key[b, h, j] . table[h, bucket[b, i, j]]`: `KeyScores` not multiplied yet."""

    name: str
    key: KeyHeads
    table: Table
    bucket: Relation

    @property
    @override
    def tokens(self) -> KeyHeads:
        return self.key

    @override
    def scores(self) -> KeyScores:
        return KeyScores(self.name, self.key @ self.table.mT, self.bucket)


def query_products(
    name: str, query: QueryHeads, table: Table, buckets: Sequence[Relation]
) -> list[AttentionBias]:
    """Return how each query likes each bucket, once for every relation; the product is taken once."""
    if len(buckets) == 1:
        return [QueryProducts(name, query, table, buckets[0])]
    scores_BHQR = query @ table.mT
    return [QueryScores(name, scores_BHQR, bucket) for bucket in buckets]


def key_products(
    name: str, key: KeyHeads, table: Table, buckets: Sequence[Relation]
) -> list[AttentionBias]:
    """Return how each key likes each bucket, once for every relation; the product is taken once."""
    if len(buckets) == 1:
        return [KeyProducts(name, key, table, buckets[0])]
    scores_BHKR = key @ table.mT
    return [KeyScores(name, scores_BHKR, bucket) for bucket in buckets]
