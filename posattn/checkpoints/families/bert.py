"""BERT (Devlin et al. 2018), as transformers stores it; MiniLM and most sentence encoders are of this form.

A checkpoint that names other position embeddings than absolute ones, or that decodes, is refused. The pooler
and the head of next-sentence prediction come along where they are stored.
"""

from collections.abc import Mapping
from typing import Any, final

from typing_extensions import override

from posattn.checkpoints.families.base import Family, Plan, families
from posattn.checkpoints.families.bert_layers import (
    LEARNED,
    QKV,
    config_of,
    embedding_rules,
    layer_rules,
    masked_token_rules,
    part_of,
    shape_of,
    with_segments,
)
from posattn.checkpoints.families.heads import Heads
from posattn.checkpoints.mapping import Table, rule
from posattn.checkpoints.settings import Settings
from posattn.training.weights import Shape

ROOT = "(bert.)"


@final
@families.register("bert")
class Bert(Family):
    """BERT: learned positions, segments, norms after each block."""

    name = "bert"
    model_types = frozenset({"bert"})
    prefix = "Bert"
    zeros = ("encoder.segments.weight",)

    @override
    def plan(self, settings: Settings, stored: Mapping[str, Shape]) -> Plan:
        refuse_decoders(settings)
        heads = bert_heads(settings, stored, ROOT)
        rules = [
            *embedding_rules(ROOT),
            rule(f"{ROOT}embeddings.position_embeddings.weight", LEARNED),
            *layer_rules(ROOT, QKV),
            *masked_token_rules(
                "cls.predictions",
                "cls.predictions.transform.dense",
                "cls.predictions.transform.LayerNorm",
            ),
            *heads.rules,
        ]
        encoder: dict[str, Any] = {
            **shape_of(settings, eps=1e-12),
            "segments": settings.whole("type_vocab_size", 2),
            "token_rows": settings.whole("vocab_size", 30522),
            "mechanism": [
                {
                    "name": "learned",
                    "max_positions": settings.whole("max_position_embeddings", 512),
                }
            ],
        }
        has_head = heads.has_masked_tokens("cls.predictions.")
        return Plan(encoder, Table(tuple(rules)), has_head, heads.tasks)

    @override
    def config(self, encoder: Mapping[str, Any]) -> dict[str, Any]:
        rows = part_of(encoder, "learned").get("max_positions", 512)
        return {
            **config_of(encoder),
            "model_type": "bert",
            "type_vocab_size": encoder["segments"],
            "max_position_embeddings": rows,
        }

    @override
    def widened(self, encoder: dict[str, Any]) -> dict[str, Any]:
        return with_segments(encoder)


def refuse_decoders(settings: Settings) -> None:
    """Raise CheckpointError where the config asks for what an encoder does not do."""
    settings.require("is_decoder", [False], False)
    settings.require("add_cross_attention", [False], False)
    settings.require("position_embedding_type", ["absolute"], "absolute")


def bert_heads(settings: Settings, stored: Mapping[str, Shape], root: str) -> Heads:
    """Return the heads of a checkpoint that has BERT's: a tanh pooler before labels of texts."""
    heads = Heads(settings, stored)
    pooler = f"{root}pooler.dense"
    transform = {"activation": "tanh"}
    dropout = settings.optional("classifier_dropout", settings.number("hidden_dropout_prob", 0.1))
    own = {"transform": transform, "dropout": dropout}
    heads.sequence("classifier", own, {"transform.proj": pooler})
    heads.choice("classifier", own, {"transform.proj": pooler})
    heads.token("classifier", dropout)
    heads.span("qa_outputs")
    if "cls.seq_relationship.weight" in stored:
        given = {"name": "sequence", "num_labels": 2, "transform": transform}
        parts = {"transform.proj": pooler, "output": "cls.seq_relationship"}
        heads.add("next_sentence", given, parts)
    heads.pooled(pooler, transform)
    return heads
