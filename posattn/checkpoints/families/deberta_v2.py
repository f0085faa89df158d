"""DeBERTa v2 and v3 (He et al. 2021, 2021b), as transformers and as Microsoft store them.

Distances past the largest bucket follow Microsoft's code; the option `beyond: growing` of the
mechanism's buckets follows transformers'. With `share_att_key` the content projections serve the table, else
each layer has its own, both with a bias. Where Microsoft's position table is stored, the masked-token head
reads the enhanced mask decoder, which transformers leaves out; `decoder: plain`, with the table accepted as
unused, follows transformers.
"""

from collections.abc import Mapping
from typing import Any, final

from typing_extensions import override

from posattn.checkpoints.families.base import Family, Plan, families
from posattn.checkpoints.families.bert_layers import layer_rules, part_of
from posattn.checkpoints.families.deberta_parts import (
    LAYER_PART,
    MASKED_TOKENS,
    RELATIVE,
    ROOT,
    deberta_config,
    deberta_encoder,
    deberta_heads,
    deberta_rules,
    mask_decoder,
    max_distance,
    relative_terms,
)
from posattn.checkpoints.mapping import Rule, Table, rule
from posattn.checkpoints.settings import Settings, activation_of_config
from posattn.errors import CheckpointError
from posattn.training.weights import Shape

_QKV = (("query_proj", "query_proj"), ("key_proj", "key_proj"), ("value_proj", "value_proj"))


@final
@families.register("deberta_v2")
class DebertaV2(Family):
    """DeBERTa v2 and v3: log buckets, a normalised table, and in xlarge a convolution."""

    name = "deberta_v2"
    model_types = frozenset({"deberta-v2"})
    prefix = "DebertaV2"
    zeros = (f"encoder.layers.*.{LAYER_PART}.position_key_proj.bias",)

    @override
    def plan(self, settings: Settings, stored: Mapping[str, Shape]) -> Plan:
        hidden, count = (settings.whole(key, 0) for key in ("hidden_size", "num_attention_heads"))
        if count:
            settings.require("attention_head_size", [hidden // count, None], None)
        heads = deberta_heads(settings, stored)
        encoder: dict[str, Any] = {
            **deberta_encoder(settings, _mechanism(settings)),
            "token_rows": settings.whole("vocab_size", 128100),
            "convolution": _convolution(settings),
        }
        rules = [*deberta_rules(settings), *_layer_rules(), *heads.rules]
        has_head = heads.has_masked_tokens(*MASKED_TOKENS)
        decoder = mask_decoder(settings, stored, has_head)
        return Plan(encoder, Table(tuple(rules)), has_head, heads.tasks, decoder)

    @override
    def config(self, encoder: Mapping[str, Any]) -> dict[str, Any]:
        relative = part_of(encoder, "disentangled")
        found = {
            **deberta_config(encoder),
            "model_type": "deberta-v2",
            "position_buckets": relative.get("buckets", {}).get("num_buckets", -1),
            "share_att_key": relative.get("projections") == "shared",
            "norm_rel_ebd": "layer_norm" if relative.get("norm_table") else "none",
        }
        if (convolution := encoder["convolution"]) is not None:
            found |= {
                "conv_kernel_size": convolution["kernel_size"],
                "conv_groups": convolution["groups"],
                "conv_act": activation_of_config(convolution["activation"]),
            }
        return found

    @override
    def widened(self, encoder: dict[str, Any]) -> dict[str, Any]:
        return encoder | {"mechanism": [_widened(part) for part in encoder["mechanism"]]}


def _widened(part: dict[str, Any]) -> dict[str, Any]:
    """Return a mechanism with v2's bias of keys, and with the buckets that an import takes."""
    if part["name"] != "disentangled":
        return part
    buckets = part["buckets"]
    if buckets["name"] == "log":
        buckets = buckets | {"beyond": "held"}
    return part | {"buckets": buckets, "key_bias": part["projections"] == "own" and part["c2p"]}


def _mechanism(settings: Settings) -> dict[str, Any] | None:
    terms = relative_terms(settings)
    if not terms:
        return None
    shared = settings.flag("share_att_key", False)
    norms = settings.names("norm_rel_ebd")
    if strange := sorted(set(norms) - {"layer_norm"}):
        raise CheckpointError(f"config.json has norm_rel_ebd {strange} (known: none, layer_norm)")
    return {
        "name": "disentangled",
        "c2p": "c2p" in terms,
        "p2c": "p2c" in terms,
        "buckets": _buckets(settings),
        "projections": "shared" if shared else "own",
        "key_bias": not shared and "c2p" in terms,
        "norm_table": bool(norms),
        "table_dropout": settings.number("hidden_dropout_prob", 0.1),
    }


def _buckets(settings: Settings) -> dict[str, Any]:
    buckets, farthest = settings.whole("position_buckets", -1), max_distance(settings)
    if buckets < 1:
        return {"name": "clipped", "max_distance": farthest}
    return {"name": "log", "num_buckets": buckets, "max_distance": farthest}


def _convolution(settings: Settings) -> dict[str, Any] | None:
    kernel = settings.whole("conv_kernel_size", 0)
    if kernel < 1:
        return None
    return {
        "kernel_size": kernel,
        "groups": settings.whole("conv_groups", 1),
        "activation": settings.activation("conv_act", "tanh"),
    }


def _layer_rules() -> list[Rule]:
    old = f"{ROOT}encoder.layer.{{n}}.attention.self"
    part = f"encoder.layers.{{n}}.{LAYER_PART}"
    return [
        *layer_rules(ROOT, _QKV),
        rule(f"{old}.pos_key_proj.{{p}}", f"{part}.position_key_proj.{{p}}"),
        rule(f"{old}.pos_query_proj.{{p}}", f"{part}.position_query_proj.{{p}}"),
        rule(f"{ROOT}encoder.LayerNorm.{{p}}", f"{RELATIVE}.table_norm.{{p}}"),
        rule(f"{ROOT}encoder.conv.conv.{{p}}", "encoder.convolution.conv.{p}"),
        rule(f"{ROOT}encoder.conv.LayerNorm.{{p}}", "encoder.convolution.norm.{p}"),
    ]
