"""XLNet (Yang et al. 2019) in both directions, as transformers stores it: without a permutation, all see all.

`mask_emb`, which starts the second stream of permuted training, has no place here and must be accepted as
unused. Memory of earlier segments starts switched off; `encoder.mechanism.memory_length=512` switches
it on. The vector of a text is the state of its last real token: transformers takes the last column, so the
two agree where padding stands on the left, as XLNet's own does. The dropout that transformers adds inside
feed-forward blocks and on the last states is left out.
"""

from collections.abc import Mapping
from typing import Any, final

from torch import Tensor
from typing_extensions import override

from posattn.checkpoints.families.base import Family, Plan, families
from posattn.checkpoints.families.heads import Heads
from posattn.checkpoints.mapping import Rule, Table, Tensors, rule
from posattn.checkpoints.settings import Settings
from posattn.errors import CheckpointError
from posattn.training.weights import Shape

ROOT = "(transformer.)"


@final
@families.register("xlnet")
class XLNet(Family):
    """XLNet: Transformer-XL's terms and a segment term, each layer with its own vectors."""

    name = "xlnet"
    model_types = frozenset({"xlnet"})

    @override
    def plan(self, settings: Settings, stored: Mapping[str, Shape]) -> Plan:
        _refuse(settings)
        heads = _heads(settings, stored)
        rules = [
            rule(f"{ROOT}word_embedding.weight", "encoder.tokens.weight"),
            *_attention_rules(),
            *_feed_forward_rules(),
            rule("lm_loss.bias", "head.output.bias"),
            rule("lm_loss.weight", "encoder.tokens.weight", how="tied to the token table"),
            *heads.rules,
        ]
        named = settings.architecture().endswith("LMHeadModel")
        has_head = named or heads.has_masked_tokens("lm_loss.")
        head = {"transform": False}
        return Plan(_encoder(settings), Table(tuple(rules)), has_head, heads.tasks, head=head)


def _refuse(settings: Settings) -> None:
    """Raise CheckpointError where the config asks for what is not computed."""
    settings.require("attn_type", ["bi"], "bi")
    settings.require("bi_data", [False], False)
    width, count = settings.whole("d_model", 1024), settings.whole("n_head", 16)
    settings.require("d_head", [width // count, None], None)
    if settings.architecture() == "XLNetForQuestionAnswering":
        raise CheckpointError(
            "config.json has architecture XLNetForQuestionAnswering, whose search over starts and ends is "
            "not computed here; XLNetForQuestionAnsweringSimple can be imported"
        )


def _encoder(settings: Settings) -> dict[str, Any]:
    dropout = settings.number("dropout", 0.1)
    clamp = settings.whole("clamp_len", -1)
    return {
        "hidden_size": settings.whole("d_model", 1024),
        "num_layers": settings.whole("n_layer", 24),
        "num_heads": settings.whole("n_head", 16),
        "intermediate_size": settings.whole("d_inner", 4096),
        "activation": settings.activation("ff_activation", "gelu"),
        "norm": {"eps": settings.number("layer_norm_eps", 1e-12)},
        "hidden_dropout": dropout,
        "attention_dropout": dropout,
        "projection_bias": "none",
        "embedding_norm": False,
        "initializer_range": settings.number("initializer_range", 0.02),
        "token_rows": settings.whole("vocab_size", 32000),
        "mechanism": [
            {
                "name": "transformer_xl",
                "untie": True,
                "segment_term": True,
                "clamp_distance": clamp if clamp > 0 else None,
                "table_dropout": dropout,
            }
        ],
    }


def _in_rows(tensor: Tensor, stored: Tensors) -> tuple[Tensor, ...]:
    """Return a projection [model, heads, head_dim] as a matrix that is multiplied from the left."""
    return (tensor.flatten(1).T,)


def _flat(tensor: Tensor, stored: Tensors) -> tuple[Tensor, ...]:
    """Return a tensor [any, heads, head_dim] with its heads side by side."""
    return (tensor.flatten(1),)


def _attention_rules() -> list[Rule]:
    old, new = f"{ROOT}layer.{{n}}.rel_attn", "encoder.layers.{n}"
    part = f"{new}.attention.position.parts.transformer_xl"
    turned = [
        ("q", f"{new}.attention.query_proj.weight"),
        ("k", f"{new}.attention.key_proj.weight"),
        ("v", f"{new}.attention.value_proj.weight"),
        ("r", f"{part}.distance_proj.weight"),
    ]
    flat = [
        ("o", f"{new}.attention.output_proj.weight"),
        ("seg_embed", f"{part}.segments.weight"),
    ]
    biases = [("r_w_bias", "content"), ("r_r_bias", "distance"), ("r_s_bias", "segment")]
    return [
        *(rule(f"{old}.{name}", ours, convert=_in_rows, how="transposed") for name, ours in turned),
        *(
            rule(f"{old}.{name}", ours, convert=_flat, how="heads side by side")
            for name, ours in flat
        ),
        *(rule(f"{old}.{name}", f"{part}.global_biases.{ours}.weight") for name, ours in biases),
        rule(f"{old}.layer_norm.{{p}}", f"{new}.attention_norm.{{p}}"),
    ]


def _feed_forward_rules() -> list[Rule]:
    old, new = f"{ROOT}layer.{{n}}.ff", "encoder.layers.{n}"
    return [
        rule(f"{old}.layer_1.{{p}}", f"{new}.feed_forward.inner_proj.{{p}}"),
        rule(f"{old}.layer_2.{{p}}", f"{new}.feed_forward.output_proj.{{p}}"),
        rule(f"{old}.layer_norm.{{p}}", f"{new}.feed_forward_norm.{{p}}"),
    ]


def _heads(settings: Settings, stored: Mapping[str, Shape]) -> Heads:
    """Return the heads: those of whole texts read a summary, those of tokens nothing in between."""
    heads = Heads(settings, stored)
    if settings.architecture().endswith(("ForSequenceClassification", "ForMultipleChoice")):
        settings.require("summary_type", ["last", "first"], "last")
        settings.require("summary_activation", ["tanh"], "tanh")
        settings.require("summary_use_proj", [True], True)
        settings.require("summary_proj_to_labels", [False], False)
    own = {
        "pool": settings.text("summary_type", "last"),
        "transform": {"activation": "tanh"},
        "dropout": settings.number("summary_last_dropout", 0.1),
    }
    parts = {"transform.proj": "sequence_summary.summary"}
    heads.sequence("logits_proj", own, parts)
    heads.choice("logits_proj", own, parts)
    heads.token("classifier", 0.0)
    heads.span("qa_outputs", ending="ForQuestionAnsweringSimple")
    return heads
