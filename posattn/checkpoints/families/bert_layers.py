"""What families with BERT's names of weights have in common."""

from collections.abc import Iterable, Mapping
from typing import Any

from posattn.checkpoints.mapping import Rule, rule
from posattn.checkpoints.settings import Settings, activation_of_config

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


def config_of(encoder: Mapping[str, Any]) -> dict[str, Any]:
    """Return the keys of config.json that say the same as these options of an encoder."""
    return {
        "vocab_size": encoder["token_rows"],
        "hidden_size": encoder["hidden_size"],
        "num_hidden_layers": encoder["num_layers"],
        "num_attention_heads": encoder["num_heads"],
        "intermediate_size": encoder["intermediate_size"],
        "hidden_act": activation_of_config(encoder["activation"]),
        "layer_norm_eps": encoder["norm"]["eps"],
        "hidden_dropout_prob": encoder["hidden_dropout"],
        "attention_probs_dropout_prob": encoder["attention_dropout"],
        "initializer_range": encoder["initializer_range"],
    }


def with_segments(encoder: dict[str, Any]) -> dict[str, Any]:
    """Return the section with one segment where it has none; its row of zeros changes nothing."""
    return encoder | {"segments": max(encoder["segments"], 1)}


def part_of(encoder: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    """Return the options of the mechanism of this name, or none."""
    return next((part for part in encoder["mechanism"] if part["name"] == name), {})


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
