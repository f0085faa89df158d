"""What families with BERT's names of weights have in common."""

from collections.abc import Iterable
from typing import Any

from posattn.checkpoints.mapping import Rule, rule
from posattn.checkpoints.settings import Settings

LEARNED = "encoder.position.mechanisms.learned.table.weight"


def shape_of(settings: Settings, eps: float) -> dict[str, Any]:
    """Return the encoder options that all such configs name alike; `eps` is the family's default."""
    return {
        "hidden_size": settings.whole("hidden_size", 768),
        "num_layers": settings.whole("num_hidden_layers", 12),
        "num_heads": settings.whole("num_attention_heads", 12),
        "intermediate_size": settings.whole("intermediate_size", 3072),
        "activation": settings.activation("hidden_act", "gelu"),
        "norm": {"eps": settings.number("layer_norm_eps", eps)},
        "hidden_dropout": settings.number("hidden_dropout_prob", 0.1),
        "attention_dropout": settings.number("attention_probs_dropout_prob", 0.1),
        "initializer_range": settings.number("initializer_range", 0.02),
    }


def embedding_rules(root: str) -> list[Rule]:
    """Return the rules for token and segment tables and their norm."""
    return [
        rule(f"{root}embeddings.word_embeddings.weight", "encoder.tokens.weight"),
        rule(f"{root}embeddings.token_type_embeddings.weight", "encoder.segments.weight"),
        rule(f"{root}embeddings.LayerNorm.{{p}}", "encoder.embedding_norm.{p}"),
    ]


def layer_rules(root: str, projections: Iterable[tuple[str, str]]) -> list[Rule]:
    """Return the rules of all layers; `projections` are old and new names within attention."""
    old, new = f"{root}encoder.layer.{{n}}", "encoder.layers.{n}"
    names = [
        *((f"attention.self.{theirs}", f"attention.{ours}") for theirs, ours in projections),
        ("attention.output.dense", "attention.output_proj"),
        ("attention.output.LayerNorm", "attention_norm"),
        ("intermediate.dense", "feed_forward.inner_proj"),
        ("output.dense", "feed_forward.output_proj"),
        ("output.LayerNorm", "feed_forward_norm"),
    ]
    return [rule(f"{old}.{theirs}.{{p}}", f"{new}.{ours}.{{p}}") for theirs, ours in names]


QKV = (("query", "query_proj"), ("key", "key_proj"), ("value", "value_proj"))


def masked_token_rules(head: str, dense: str, norm: str) -> list[Rule]:
    """Return the rules of a masked-token head whose output weights are the token table."""
    return [
        rule(f"{dense}.{{p}}", "head.proj.{p}"),
        rule(f"{norm}.{{p}}", "head.norm.{p}"),
        rule(f"{head}.bias", "head.output.bias"),
        rule(f"{head}.decoder.bias", "head.output.bias", how="the same as bias"),
        rule(f"{head}.decoder.weight", "encoder.tokens.weight", how="tied to the token table"),
    ]
