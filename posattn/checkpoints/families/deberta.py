"""DeBERTa v1 (He et al. 2021), as transformers and as Microsoft store it.

Query, key and value lie in one matrix, head by head; queries and values have biases, keys none. The
position projections are each layer's own. Talking heads are refused.
"""

from collections.abc import Mapping
from typing import Any, final

from typing_extensions import override

from posattn.checkpoints.families.base import Family, Plan, families
from posattn.checkpoints.families.bert_layers import layer_rules
from posattn.checkpoints.families.deberta_parts import (
    LAYER_PART,
    MASKED_TOKENS,
    ROOT,
    deberta_config,
    deberta_encoder,
    deberta_heads,
    deberta_rules,
    mask_decoder,
    max_distance,
    relative_terms,
)
from posattn.checkpoints.mapping import Rule, Table, per_head_thirds, rule
from posattn.checkpoints.settings import Settings
from posattn.training.weights import Shape


@final
@families.register("deberta")
class Deberta(Family):
    """DeBERTa v1: clipped distances, own position projections, fused query, key and value."""

    name = "deberta"
    model_types = frozenset({"deberta"})
    prefix = "Deberta"

    @override
    def plan(self, settings: Settings, stored: Mapping[str, Shape]) -> Plan:
        settings.require("talking_head", [False], False)
        heads = deberta_heads(settings, stored)
        encoder: dict[str, Any] = {
            **deberta_encoder(settings, _mechanism(settings)),
            "projection_bias": "no_key",
            "token_rows": settings.whole("vocab_size", 50265),
        }
        rules = [*deberta_rules(settings), *_layer_rules(encoder["num_heads"]), *heads.rules]
        has_head = heads.has_masked_tokens(*MASKED_TOKENS)
        decoder = mask_decoder(settings, stored, has_head)
        return Plan(encoder, Table(tuple(rules)), has_head, heads.tasks, decoder)

    @override
    def config(self, encoder: Mapping[str, Any]) -> dict[str, Any]:
        return {**deberta_config(encoder), "model_type": "deberta"}


def _mechanism(settings: Settings) -> dict[str, Any] | None:
    terms = relative_terms(settings)
    if not terms:
        return None
    return {
        "name": "disentangled",
        "c2p": "c2p" in terms,
        "p2c": "p2c" in terms,
        "buckets": {"name": "clipped", "max_distance": max_distance(settings)},
        "projections": "own",
        "norm_table": False,
        "table_dropout": settings.number("hidden_dropout_prob", 0.1),
    }


def _layer_rules(num_heads: int) -> list[Rule]:
    old, new = f"{ROOT}encoder.layer.{{n}}.attention.self", "encoder.layers.{n}.attention"
    thirds = [f"{new}.{name}_proj.weight" for name in ("query", "key", "value")]
    part = f"encoder.layers.{{n}}.{LAYER_PART}"
    how = "query, key and value split head by head"
    return [
        *layer_rules(ROOT, ()),
        rule(f"{old}.in_proj.weight", *thirds, convert=per_head_thirds(num_heads), how=how),
        rule(f"{old}.q_bias", f"{new}.query_proj.bias"),
        rule(f"{old}.v_bias", f"{new}.value_proj.bias"),
        rule(f"{old}.pos_proj.weight", f"{part}.position_key_proj.weight"),
        rule(f"{old}.pos_q_proj.{{p}}", f"{part}.position_query_proj.{{p}}"),
    ]
