"""BERT with ALiBi and gates: Jina-BERT v2 (Guenther et al. 2023) and MosaicBERT (Portes et al. 2023).

Both are custom code, which is never run. They are recognised by the exact names of its classes in
`auto_map`, and what they compute is written out in the tests: symmetric ALiBi with the authors' slopes and a
feed-forward block whose first projection holds gate and inner rows and has no bias. DNABERT-2 is
MosaicBERT's code and has its class names. A config that names the same classes for another form, as
Jina's with normalised queries and keys does, has tensors without a place here and is refused for that.
Dropout inside the feed-forward block stands behind it here.
"""

from collections.abc import Iterable, Mapping
from typing import Any, final

from typing_extensions import override

from posattn.checkpoints.families.base import Family, Plan, families
from posattn.checkpoints.families.bert import bert_heads
from posattn.checkpoints.families.bert_layers import (
    QKV,
    embedding_rules,
    masked_token_rules,
    shape_of,
)
from posattn.checkpoints.families.heads import Heads
from posattn.checkpoints.mapping import Rule, Table, row_blocks, rule
from posattn.checkpoints.settings import Settings
from posattn.training.weights import Shape

ROOT = "(bert.)"
_HEADS = (
    "MaskedLM",
    "SequenceClassification",
    "TokenClassification",
    "QuestionAnswering",
    "MultipleChoice",
)


@final
@families.register("jina_bert")
class JinaBert(Family):
    """Jina-BERT v2: ALiBi, gates, separate query, key and value."""

    name = "jina_bert"
    model_types = frozenset()
    custom_classes = frozenset(
        {
            "configuration_bert.JinaBertConfig",
            "modeling_bert.JinaBertModel",
            *(f"modeling_bert.JinaBertFor{head}" for head in _HEADS),
        }
    )

    @override
    def plan(self, settings: Settings, stored: Mapping[str, Shape]) -> Plan:
        settings.require("position_embedding_type", ["alibi"], "absolute")
        settings.require("feed_forward_type", ["geglu", "reglu"], "original")
        gate = settings.text("feed_forward_type", "geglu")
        old, new = f"{ROOT}encoder.layer.{{n}}.attention.self", "encoder.layers.{n}.attention"
        projections = [rule(f"{old}.{theirs}.{{p}}", f"{new}.{ours}.{{p}}") for theirs, ours in QKV]
        return _plan(settings, stored, gate, projections)


@final
@families.register("mosaic_bert")
class MosaicBert(Family):
    """MosaicBERT and DNABERT-2: ALiBi, gates, one projection for query, key and value."""

    name = "mosaic_bert"
    model_types = frozenset()
    custom_classes = frozenset(
        {
            "configuration_bert.BertConfig",
            "bert_layers.BertModel",
            "bert_layers.BertForMaskedLM",
            "bert_layers.BertForSequenceClassification",
        }
    )

    @override
    def plan(self, settings: Settings, stored: Mapping[str, Shape]) -> Plan:
        settings.require("layer_norm_eps", [1e-12], 1e-12)  # of the masked-token head in any case
        new = "encoder.layers.{n}.attention"
        fused = rule(
            f"{ROOT}encoder.layer.{{n}}.attention.self.Wqkv.{{p}}",
            *(f"{new}.{ours}.{{p}}" for _, ours in QKV),
            convert=row_blocks(3),
            how="split in thirds",
        )
        return _plan(settings, stored, "geglu", [fused])


def _plan(
    settings: Settings, stored: Mapping[str, Shape], gate: str, projections: Iterable[Rule]
) -> Plan:
    settings.require("is_decoder", [False], False)
    settings.require("add_cross_attention", [False], False)
    heads = bert_heads(settings, stored, ROOT)
    head = {"activation": settings.activation("hidden_act", "gelu")}
    encoder: dict[str, Any] = {
        **shape_of(settings, eps=1e-12),
        "activation": gate,
        "feed_forward_bias": "output",
        "segments": settings.whole("type_vocab_size", 2),
        "token_rows": settings.whole("vocab_size", 30522),
        "mechanism": [{"name": "alibi"}],
    }
    has_head = heads.has_masked_tokens("cls.predictions.")
    table = Table((*projections, *_rules(heads)))
    return Plan(encoder, table, has_head, heads.tasks, head=head)


def _rules(heads: Heads) -> list[Rule]:
    old, new = f"{ROOT}encoder.layer.{{n}}", "encoder.layers.{n}"
    gated = [f"{new}.feed_forward.{part}_proj.weight" for part in ("gate", "inner")]
    return [
        *embedding_rules(ROOT),
        rule(f"{old}.attention.output.dense.{{p}}", f"{new}.attention.output_proj.{{p}}"),
        rule(f"{old}.attention.output.LayerNorm.{{p}}", f"{new}.attention_norm.{{p}}"),
        rule(
            f"{old}.mlp.gated_layers.weight",
            *gated,
            convert=row_blocks(2),
            how="split in halves",
        ),
        rule(f"{old}.mlp.wo.{{p}}", f"{new}.feed_forward.output_proj.{{p}}"),
        rule(f"{old}.mlp.layernorm.{{p}}", f"{new}.feed_forward_norm.{{p}}"),
        *masked_token_rules(
            "cls.predictions",
            "cls.predictions.transform.dense",
            "cls.predictions.transform.LayerNorm",
        ),
        *heads.rules,
    ]
