"""A bias looked up by bucket in products of tokens with a table (DeBERTa, Shaw, Transformer-XL)."""

from collections.abc import Mapping
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


@final
@dataclass(frozen=True)
class QueryProducts(AttentionBias):
    """`bias[b, h, i, j] = query[b, h, i] . table[h, bucket[b, i, j]]`: `QueryScores` not multiplied yet."""

    name: str
    query: QueryHeads
    table: Table
    bucket: Relation

    def scores(self) -> QueryScores:
        """Return the scores of every query for every bucket."""
        return QueryScores(self.name, self.query @ self.table.mT, self.bucket)

    @override
    def parts(self) -> tuple[AttentionBias, ...]:
        return (self.scores(),)

    @override
    def factored(self) -> tuple[AttentionBias, ...]:
        return (self,)

    @override
    def learns(self) -> bool:
        return self.query.requires_grad or self.table.requires_grad

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
class KeyProducts(AttentionBias):
    """`bias[b, h, i, j] = key[b, h, j] . table[h, bucket[b, i, j]]`: `KeyScores` not multiplied yet."""

    name: str
    key: KeyHeads
    table: Table
    bucket: Relation

    def scores(self) -> KeyScores:
        """Return the scores of every key for every bucket."""
        return KeyScores(self.name, self.key @ self.table.mT, self.bucket)

    @override
    def parts(self) -> tuple[AttentionBias, ...]:
        return (self.scores(),)

    @override
    def factored(self) -> tuple[AttentionBias, ...]:
        return (self,)

    @override
    def learns(self) -> bool:
        return self.key.requires_grad or self.table.requires_grad

    @override
    def materialize(self) -> Logits:
        return self.scores().materialize()

    @override
    def terms(self) -> Mapping[str, Logits]:
        return self.scores().terms()

    @override
    def score_mod(self) -> ScoreMod:
        return self.scores().score_mod()
