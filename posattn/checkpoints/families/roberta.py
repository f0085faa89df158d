"""RoBERTa (Liu et al. 2019) and XLM-RoBERTa, as transformers stores them.

The position table starts after the row of the padding id, so a table of 514 rows with padding id 1 takes
512 tokens. The masked-token head always has gelu, so another `hidden_act` is refused where it is stored.
"""

from collections.abc import Mapping
from typing import Any, final

from typing_extensions import override

from posattn.checkpoints.families.base import Family, Plan, families
from posattn.checkpoints.families.bert import refuse_decoders
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

ROOT = "(roberta.)"


@final
@families.register("roberta")
class Roberta(Family):
    """RoBERTa: BERT with positions that start after padding."""

    name = "roberta"
    model_types = frozenset({"roberta", "xlm-roberta"})
    prefix = "Roberta"
    zeros = ("encoder.segments.weight",)

    @override
    def plan(self, settings: Settings, stored: Mapping[str, Shape]) -> Plan:
        refuse_decoders(settings)
        heads = _heads(settings, stored)
        has_head = heads.has_masked_tokens("lm_head.")
        if has_head:
            settings.require("hidden_act", ["gelu"], "gelu")
        rules = [
            *embedding_rules(ROOT),
            rule(f"{ROOT}embeddings.position_embeddings.weight", LEARNED),
            *layer_rules(ROOT, QKV),
            *masked_token_rules("lm_head", "lm_head.dense", "lm_head.layer_norm"),
            *heads.rules,
        ]
        rows = settings.whole("max_position_embeddings", 512)
        padding = settings.whole("pad_token_id", 1)
        learned = {"name": "learned", "max_positions": rows, "padding_row": padding}
        encoder: dict[str, Any] = {
            **shape_of(settings, eps=1e-12),
            "segments": settings.whole("type_vocab_size", 2),
            "token_rows": settings.whole("vocab_size", 50265),
            "mechanism": [learned],
        }
        note = f"the position table of {rows} rows takes {rows - padding - 1} tokens"
        return Plan(encoder, Table(tuple(rules)), has_head, heads.tasks, notes=(note,))

    @override
    def config(self, encoder: Mapping[str, Any]) -> dict[str, Any]:
        learned = part_of(encoder, "learned")
        padding = learned.get("padding_row")
        return {
            **config_of(encoder),
            "model_type": "roberta",
            "type_vocab_size": encoder["segments"],
            "max_position_embeddings": learned.get("max_positions", 514),
            "pad_token_id": 1 if padding is None else padding,
        }

    @override
    def widened(self, encoder: dict[str, Any]) -> dict[str, Any]:
        return with_segments(encoder)


def _heads(settings: Settings, stored: Mapping[str, Shape]) -> Heads:
    """Return the heads: labels of texts through a projection of their own, a choice through the pooler."""
    heads = Heads(settings, stored)
    hidden = settings.number("hidden_dropout_prob", 0.1)
    dropout = settings.optional("classifier_dropout", hidden)
    pooler = f"{ROOT}pooler.dense"
    own = {"transform": {"activation": "tanh", "dropout": dropout}, "dropout": dropout}
    heads.sequence("classifier.out_proj", own, {"transform.proj": "classifier.dense"})
    choice = {"transform": {"activation": "tanh"}, "dropout": hidden}
    heads.choice("classifier", choice, {"transform.proj": pooler})
    heads.token("classifier", dropout)
    heads.span("qa_outputs")
    heads.pooled(pooler, {"activation": "tanh"})
    return heads
