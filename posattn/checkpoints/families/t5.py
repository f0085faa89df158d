"""The encoder of T5 (Raffel et al. 2020), version 1.0 and 1.1, as transformers stores it.

RMS norms before blocks, no bias anywhere, logits that are not scaled, one bias table for all layers. A whole
T5 has a decoder as well, whose tensors have no place here and must be accepted as unused (`decoder.*`, and
`lm_head.weight` in version 1.1). Labels of tokens are read from the encoder and come along; the heads that
read the decoder's states do not. The dropout inside feed-forward blocks is left out.
"""

from collections.abc import Mapping
from typing import Any, final

from typing_extensions import override

from posattn.checkpoints.families.base import Family, Plan, families
from posattn.checkpoints.families.heads import Heads
from posattn.checkpoints.mapping import Rule, Table, rule
from posattn.checkpoints.settings import Settings
from posattn.errors import CheckpointError
from posattn.training.weights import Shape

ROOT = "(transformer.)"
_FEED_FORWARD = {"relu": "relu", "gated-gelu": "geglu_tanh", "gated-silu": "swiglu"}


@final
@families.register("t5")
class T5Encoder(Family):
    """T5's encoder."""

    name = "t5"
    model_types = frozenset({"t5"})

    @override
    def plan(self, settings: Settings, stored: Mapping[str, Shape]) -> Plan:
        settings.require("is_decoder", [False], False)
        heads = Heads(settings, stored)
        heads.token("classifier", settings.number("classifier_dropout", 0.0))
        rules = (*_rules(), *heads.rules)
        return Plan(_encoder(settings), Table(rules), has_head=False, tasks=heads.tasks)


def _encoder(settings: Settings) -> dict[str, Any]:
    width, count = settings.whole("d_model", 512), settings.whole("num_heads", 8)
    if settings.whole("d_kv", 64) * count != width:
        raise CheckpointError(
            f"config.json has {count} heads of d_kv {settings.whole('d_kv', 64)}, which together are not "
            f"d_model {width} wide; such heads cannot be imported"
        )
    settings.require("feed_forward_proj", list(_FEED_FORWARD), "relu")
    dropout = settings.number("dropout_rate", 0.1)
    return {
        "hidden_size": width,
        "num_layers": settings.whole("num_layers", 6),
        "num_heads": count,
        "intermediate_size": settings.whole("d_ff", 2048),
        "activation": _FEED_FORWARD[settings.text("feed_forward_proj", "relu")],
        "norm": {
            "kind": "rms_norm",
            "placement": "pre",
            "eps": settings.number("layer_norm_epsilon", 1e-6),
        },
        "hidden_dropout": dropout,
        "attention_dropout": dropout,
        "projection_bias": "none",
        "feed_forward_bias": False,
        "embedding_norm": False,
        "token_rows": settings.whole("vocab_size", 32128),
        "mechanism": [
            {
                "name": "t5",
                "num_buckets": settings.whole("relative_attention_num_buckets", 32),
                "max_distance": settings.whole("relative_attention_max_distance", 128),
                "scale": "none",
            }
        ],
    }


def _rules() -> list[Rule]:
    old, new = f"{ROOT}encoder.block.{{n}}.layer", "encoder.layers.{n}"
    attention, dense = f"{old}.0.SelfAttention", f"{old}.1.DenseReluDense"
    letters = (("q", "query"), ("k", "key"), ("v", "value"), ("o", "output"))
    first = f"{ROOT}encoder.block.0.layer.0.SelfAttention.relative_attention_bias.weight"
    tied = f"{ROOT}encoder.embed_tokens.weight"
    block = f"{new}.feed_forward"
    return [
        rule(f"{ROOT}shared.weight", "encoder.tokens.weight"),
        rule(tied, "encoder.tokens.weight", how="the same as shared"),
        rule(first, "encoder.position.mechanisms.t5.table.weight"),
        *(
            rule(f"{attention}.{letter}.weight", f"{new}.attention.{name}_proj.weight")
            for letter, name in letters
        ),
        rule(f"{old}.0.layer_norm.weight", f"{new}.attention_norm.weight"),
        rule(f"{dense}.wi.weight", f"{block}.inner_proj.weight"),
        rule(f"{dense}.wi_0.weight", f"{block}.gate_proj.weight"),
        rule(f"{dense}.wi_1.weight", f"{block}.inner_proj.weight"),
        rule(f"{dense}.wo.weight", f"{block}.output_proj.weight"),
        rule(f"{old}.1.layer_norm.weight", f"{new}.feed_forward_norm.weight"),
        rule(f"{ROOT}encoder.final_layer_norm.weight", "encoder.final_norm.weight"),
    ]
