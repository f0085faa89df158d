"""What DeBERTa v1 and v2/v3 have in common: embeddings, heads, and the enhanced mask decoder of Microsoft."""

from collections.abc import Mapping
from typing import Any

from posattn.checkpoints.families.bert_layers import (
    LEARNED,
    config_of,
    embedding_rules,
    masked_token_rules,
    part_of,
    shape_of,
)
from posattn.checkpoints.families.heads import Heads
from posattn.checkpoints.mapping import Rule, rule, times
from posattn.checkpoints.settings import Settings
from posattn.errors import CheckpointError
from posattn.training.weights import Shape

ROOT = "(deberta.)"
RELATIVE = "encoder.position.mechanisms.disentangled"
LAYER_PART = "attention.position.parts.disentangled"
_POSITIONS = f"{ROOT}embeddings.position_embeddings.weight"
_MICROSOFT = "lm_predictions.lm_head"
MASKED_TOKENS = (f"{_MICROSOFT}.", "cls.predictions.")
"""How the names of a masked-token head begin, in Microsoft's code and in transformers'."""


def deberta_encoder(settings: Settings, disentangled: dict[str, Any] | None) -> dict[str, Any]:
    """Return the encoder section; `disentangled` is None without relative attention."""
    mechanisms: list[dict[str, Any]] = [] if disentangled is None else [disentangled]
    if settings.flag("position_biased_input", True):
        rows = settings.whole("max_position_embeddings", 512)
        mechanisms.insert(0, {"name": "learned", "max_positions": rows})
    hidden = settings.whole("hidden_size", 768)
    narrow = settings.whole("embedding_size", hidden)
    return {
        **shape_of(settings, eps=1e-7),
        "segments": settings.whole("type_vocab_size", 0),
        "embedding_size": None if narrow == hidden else narrow,
        "mechanism": mechanisms or [{"name": "none"}],
    }


def deberta_config(encoder: Mapping[str, Any]) -> dict[str, Any]:
    """Return the keys of config.json that both versions have for these options of an encoder."""
    learned, relative = part_of(encoder, "learned"), part_of(encoder, "disentangled")
    buckets = relative.get("buckets", {})
    found = {
        **config_of(encoder),
        "type_vocab_size": encoder["segments"],
        "position_biased_input": bool(learned),
        "max_position_embeddings": learned.get("max_positions", 512),
        "relative_attention": bool(relative),
        "pos_att_type": [term for term in ("c2p", "p2c") if relative.get(term)],
        "max_relative_positions": buckets.get("max_distance", -1),
        "pooler_hidden_size": encoder["hidden_size"],
    }
    if encoder["embedding_size"] is not None:
        found["embedding_size"] = encoder["embedding_size"]
    return found


def relative_terms(settings: Settings) -> set[str] | None:
    """Return the position terms, in whichever order they stand; None without relative attention."""
    terms = settings.names("pos_att_type")
    if strange := sorted(set(terms) - {"c2p", "p2c"}):
        raise CheckpointError(
            f"config.json has pos_att_type {terms}; {strange} cannot be imported, since no released code "
            "computes it (known: c2p, p2c)"
        )
    if not settings.flag("relative_attention", False):
        if terms:
            raise CheckpointError(
                f"config.json has pos_att_type {terms} with relative_attention false, which scales as if "
                "there were such terms and has none; it cannot be imported"
            )
        return None
    return set(terms)


def max_distance(settings: Settings) -> int:
    """Return the largest relative position; -1 stands for the longest input."""
    found = settings.whole("max_relative_positions", -1)
    return found if found > 0 else settings.whole("max_position_embeddings", 512)


def mask_decoder(settings: Settings, stored: Mapping[str, Shape], has_head: bool) -> dict[str, Any]:
    """Return the decoder: Microsoft's, where its position table is stored and not added to the input."""
    names = (
        "deberta.embeddings.position_embeddings.weight",
        "embeddings.position_embeddings.weight",
    )
    table = next((stored[name] for name in names if name in stored), None)
    if table is None or not has_head or settings.flag("position_biased_input", True):
        return {"name": "plain"}
    return {"name": "emd", "inject": {"name": "learned", "max_positions": table[0]}}


def deberta_rules(settings: Settings) -> list[Rule]:
    """Return the rules for embeddings, relative table and masked-token head.

    A token table narrower than the states is projected; what is added to it before the projection is
    multiplied by the projection here, and added after it.
    """
    rules = embedding_rules(ROOT)
    segments, positions = f"{ROOT}embeddings.token_type_embeddings.weight", _POSITIONS
    if settings.whole("embedding_size", settings.whole("hidden_size", 768)) != settings.whole(
        "hidden_size", 768
    ):
        projection = f"{ROOT}embeddings.embed_proj.weight"
        how = "multiplied by embed_proj, to be added behind it"
        rules = [
            rule(projection, "encoder.embedding_proj.weight"),
            rule(segments, "encoder.segments.weight", convert=times(projection), how=how),
            rule(positions, LEARNED, convert=times(projection), how=how),
            *(line for line in rules if line.old != segments),
        ]
    return [
        *rules,
        rule(positions, LEARNED),
        rule(positions, "decoder.inject.table.weight", how="of the mask decoder"),
        rule(f"{ROOT}encoder.rel_embeddings.weight", f"{RELATIVE}.table.weight"),
        *masked_token_rules(_MICROSOFT, f"{_MICROSOFT}.dense", f"{_MICROSOFT}.LayerNorm"),
        *masked_token_rules(
            "cls.predictions",
            "cls.predictions.transform.dense",
            "cls.predictions.transform.LayerNorm",
        ),
    ]


def deberta_heads(settings: Settings, stored: Mapping[str, Shape]) -> Heads:
    """Return the heads: labels of texts and choices through the context pooler."""
    settings.require("pooler_hidden_size", [settings.whole("hidden_size", 768), None], None)
    heads = Heads(settings, stored)
    hidden = settings.number("hidden_dropout_prob", 0.1)
    transform = {
        "activation": settings.activation("pooler_hidden_act", "gelu"),
        "dropout": settings.number("pooler_dropout", 0.0),
    }
    own = {"transform": transform, "dropout": settings.optional("cls_dropout", hidden)}
    parts = {"transform.proj": "pooler.dense"}
    heads.sequence("classifier", own, parts)
    heads.choice("classifier", own, parts)
    heads.token("classifier", hidden)
    heads.span("qa_outputs")
    heads.pooled("pooler.dense", transform)
    return heads
