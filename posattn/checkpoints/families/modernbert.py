"""ModernBERT (Warner et al. 2024), as transformers stores it.

Norms before blocks and without bias, none before the first attention, gated feed-forward blocks, and rotary
positions in halves with one base in global and another in local layers. Dropout is the one of the
feed-forward block everywhere outside attention; released models have none. All heads read one
projection with activation and norm.
"""

from collections.abc import Mapping
from typing import Any, final

from typing_extensions import override

from posattn.checkpoints.families.base import Family, Plan, families
from posattn.checkpoints.families.heads import Heads
from posattn.checkpoints.mapping import Rule, Table, row_blocks, rule
from posattn.checkpoints.settings import Settings, gate_of_config
from posattn.errors import CheckpointError
from posattn.training.weights import Shape

ROOT = "(model.)"
_GLOBAL, _LOCAL = "full_attention", "sliding_attention"
_BASES = {_GLOBAL: ("global_rope_theta", 160000.0), _LOCAL: ("local_rope_theta", 10000.0)}


@final
@families.register("modernbert")
class ModernBert(Family):
    """ModernBERT: local and global layers with rotary positions."""

    name = "modernbert"
    model_types = frozenset({"modernbert"})
    prefix = "ModernBert"

    @override
    def plan(self, settings: Settings, stored: Mapping[str, Shape]) -> Plan:
        heads = _heads(settings, stored)
        rules = [*_body_rules(), *_masked_token_rules(), *heads.rules]
        has_head = heads.has_masked_tokens("decoder.")
        head = {
            "bias": settings.flag("classifier_bias", False),
            "activation": settings.activation("classifier_activation", "gelu"),
            "output_bias": settings.flag("decoder_bias", True),
        }
        return Plan(_encoder(settings), Table(tuple(rules)), has_head, heads.tasks, head=head)

    @override
    def config(self, encoder: Mapping[str, Any]) -> dict[str, Any]:
        window = encoder["window"] or {"size": 128, "layers": []}
        types = [
            _LOCAL if index in window["layers"] else _GLOBAL
            for index in range(encoder["num_layers"])
        ]
        return {
            "model_type": "modernbert",
            "vocab_size": encoder["token_rows"],
            "hidden_size": encoder["hidden_size"],
            "num_hidden_layers": encoder["num_layers"],
            "num_attention_heads": encoder["num_heads"],
            "intermediate_size": encoder["intermediate_size"],
            "hidden_activation": gate_of_config(encoder["activation"]),
            "norm_eps": encoder["norm"]["eps"],
            "norm_bias": encoder["norm"]["bias"],
            "attention_bias": encoder["projection_bias"] == "all",
            "mlp_bias": encoder["feed_forward_bias"],
            "mlp_dropout": encoder["hidden_dropout"],
            "embedding_dropout": encoder["hidden_dropout"],
            "attention_dropout": encoder["attention_dropout"],
            "initializer_range": encoder["initializer_range"],
            "local_attention": window["size"],
            "layer_types": types,
            "rope_parameters": {
                kind: {
                    "rope_type": "default",
                    "rope_theta": _base_of(encoder, _those(types, kind), kind),
                }
                for kind in (_GLOBAL, _LOCAL)
            },
        }


def _base_of(encoder: Mapping[str, Any], layers: list[int], kind: str) -> float:
    """Return the base of the angles that a section has in these layers."""
    acting = [part for part in encoder["mechanism"] if {*layers} <= {*part["layers"]}]
    found: float = next((part["base"] for part in acting if "base" in part), _BASES[kind][1])
    return found


def _encoder(settings: Settings) -> dict[str, Any]:
    layers = settings.whole("num_hidden_layers", 22)
    types = _layer_types(settings, layers)
    local = [index for index, kind in enumerate(types) if kind == _LOCAL]
    encoder = {
        "hidden_size": settings.whole("hidden_size", 768),
        "num_layers": layers,
        "num_heads": settings.whole("num_attention_heads", 12),
        "intermediate_size": settings.whole("intermediate_size", 1152),
        "activation": settings.gate("hidden_activation", "gelu"),
        "norm": {
            "placement": "pre",
            "before_first": False,
            "eps": settings.number("norm_eps", 1e-5),
            "bias": settings.flag("norm_bias", False),
        },
        "projection_bias": "all" if settings.flag("attention_bias", False) else "none",
        "feed_forward_bias": settings.flag("mlp_bias", False),
        "hidden_dropout": settings.number("mlp_dropout", 0.0),
        "attention_dropout": settings.number("attention_dropout", 0.0),
        "initializer_range": settings.number("initializer_range", 0.02),
        "token_rows": settings.whole("vocab_size", 50368),
        "mechanism": [
            {"name": "rope", "base": _base(settings, kind), "layers": _those(types, kind)}
            for kind in (_GLOBAL, _LOCAL)
            if kind in types
        ],
    }
    if local:
        encoder["window"] = {"size": settings.whole("local_attention", 128), "layers": local}
    return encoder


def _those(types: list[str], kind: str) -> list[int]:
    return [index for index, found in enumerate(types) if found == kind]


def _layer_types(settings: Settings, layers: int) -> list[str]:
    """Return which layers are global and which local; older configs say how often a global one comes."""
    if "layer_types" not in settings:
        every = settings.whole("global_attn_every_n_layers", 3)
        return [_LOCAL if index % every else _GLOBAL for index in range(layers)]
    types = settings.names("layer_types")
    if len(types) != layers or set(types) - {_GLOBAL, _LOCAL}:
        raise CheckpointError(
            f"config.json has layer_types {types} for {layers} layers; it must name {_GLOBAL} or {_LOCAL} "
            "for each"
        )
    return types


def _base(settings: Settings, kind: str) -> float:
    """Return the base of the angles in layers of one kind; angles that are scaled are refused."""
    settings.require("rope_scaling", [None], None)
    section = settings.section("rope_parameters").section(kind)
    section.require("rope_type", ["default"], "default")
    key, default = _BASES[kind]
    return section.number("rope_theta", settings.number(key, default))


def _body_rules() -> list[Rule]:
    old, new = f"{ROOT}layers.{{n}}", "encoder.layers.{n}"
    parts = [f"{new}.attention.{part}_proj.{{p}}" for part in ("query", "key", "value")]
    gated = [f"{new}.feed_forward.{part}_proj.{{p}}" for part in ("gate", "inner")]
    return [
        rule(f"{ROOT}embeddings.tok_embeddings.weight", "encoder.tokens.weight"),
        rule(f"{ROOT}embeddings.norm.{{p}}", "encoder.embedding_norm.{p}"),
        rule(f"{old}.attn_norm.{{p}}", f"{new}.attention_norm.{{p}}"),
        rule(f"{old}.attn.Wqkv.{{p}}", *parts, convert=row_blocks(3), how="split in thirds"),
        rule(f"{old}.attn.Wo.{{p}}", f"{new}.attention.output_proj.{{p}}"),
        rule(f"{old}.mlp_norm.{{p}}", f"{new}.feed_forward_norm.{{p}}"),
        rule(f"{old}.mlp.Wi.{{p}}", *gated, convert=row_blocks(2), how="split in halves"),
        rule(f"{old}.mlp.Wo.{{p}}", f"{new}.feed_forward.output_proj.{{p}}"),
        rule(f"{ROOT}final_norm.{{p}}", "encoder.final_norm.{p}"),
    ]


def _masked_token_rules() -> list[Rule]:
    return [
        rule("head.dense.{p}", "head.proj.{p}"),
        rule("head.norm.{p}", "head.norm.{p}"),
        rule("decoder.bias", "head.output.bias"),
        rule("decoder.weight", "encoder.tokens.weight", how="tied to the token table"),
    ]


def _heads(settings: Settings, stored: Mapping[str, Shape]) -> Heads:
    """Return the heads, which all have the same projection before the labels."""
    pooling = settings.text("classifier_pooling", "cls")
    settings.require("classifier_pooling", ["cls", "mean"], "cls")
    transform = {
        "activation": settings.activation("classifier_activation", "gelu"),
        "bias": settings.flag("classifier_bias", False),
        "norm": True,
    }
    dropout = settings.number("classifier_dropout", 0.0)
    per_token = {"transform": transform, "dropout": dropout}
    own = {**per_token, "pool": "first" if pooling == "cls" else "mean"}
    parts = {"transform.proj": "head.dense", "transform.norm": "head.norm"}
    heads = Heads(settings, stored)
    heads.sequence("classifier", own, parts)
    heads.choice("classifier", own, parts)
    heads.token("classifier", dropout, per_token, parts)
    heads.span("classifier", per_token, parts)
    return heads
