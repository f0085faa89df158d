"""NomicBERT (Nussbaum et al. 2024), as transformers stores it and as Nomic's own code does.

BERT with rotary positions in halves, gated feed-forward blocks and no bias in the layers. Configs of
Nomic's code have GPT-2's keys; what it can do beyond the released models is refused by key. Its
`rotary_scaling_factor` is `scaling: dynamic_ntk` here, read from each text's own length and not from the
longest of the batch.
"""

from collections.abc import Mapping
from typing import Any, final

from typing_extensions import override

from posattn.checkpoints.families.base import Family, Plan, families
from posattn.checkpoints.families.bert import bert_heads
from posattn.checkpoints.families.bert_layers import masked_token_rules
from posattn.checkpoints.mapping import Rule, Table, row_blocks, rule
from posattn.checkpoints.settings import Settings
from posattn.training.weights import Shape

_CODE = "modeling_hf_nomic_bert.NomicBert"
_HEADS = ("SequenceClassification", "MultipleChoice", "TokenClassification", "QuestionAnswering")
_PREDICTIONS = "cls.predictions"
_REQUIRED: Mapping[str, Any] = {
    "prenorm": False,
    "parallel_block": False,
    "use_rms_norm": False,
    "qkv_proj_bias": False,
    "mlp_fc1_bias": False,
    "mlp_fc2_bias": False,
    "rotary_emb_fraction": 1.0,
    "rotary_emb_interleaved": False,
    "rotary_emb_scale_base": None,
    "scale_attn_weights": True,
    "scale_attn_by_inverse_layer_idx": False,
    "causal": False,
    "num_experts": 0,
    "moe_every_n_layers": 0,
}


@final
@families.register("nomic_bert")
class NomicBert(Family):
    """NomicBERT: BERT with rotary positions and gates."""

    name = "nomic_bert"
    model_types = frozenset({"nomic_bert"})
    custom_classes = frozenset(
        {
            "configuration_hf_nomic_bert.NomicBertConfig",
            f"{_CODE}Model",
            f"{_CODE}ForPreTraining",
            *(f"{_CODE}For{head}" for head in _HEADS),
        }
    )

    @override
    def plan(self, settings: Settings, stored: Mapping[str, Shape]) -> Plan:
        for key, value in _REQUIRED.items():
            settings.require(key, [value], value)
        root = "(bert.)" if any(name.startswith("bert.") for name in stored) else "(nomic_bert.)"
        heads = bert_heads(settings, stored, root)
        dense, norm = f"{_PREDICTIONS}.transform.dense", f"{_PREDICTIONS}.transform.layer_norm"
        has_head = heads.has_masked_tokens(f"{_PREDICTIONS}.")
        is_own_code = has_head and f"{dense}.bias" not in stored
        head = {"bias": not is_own_code, "output_bias": not is_own_code}
        rules = [
            *_embedding_rules(root),
            *_layer_rules(f"{root}encoder.layers.{{n}}"),
            *_renamed_layer_rules(f"{root}layers.{{n}}"),
            *masked_token_rules(_PREDICTIONS, dense, norm),
            *heads.rules,
        ]
        return Plan(_encoder(settings), Table(tuple(rules)), has_head, heads.tasks, head=head)


def _encoder(settings: Settings) -> dict[str, Any]:
    def key(name: str, gpt2: str) -> str:
        return name if name in settings else gpt2

    act = key("hidden_act", "activation_function")
    is_gate = act == "hidden_act" or settings.text(act, "silu") != "swiglu"
    return {
        "hidden_size": settings.whole(key("hidden_size", "n_embd"), 768),
        "num_layers": settings.whole(key("num_hidden_layers", "n_layer"), 12),
        "num_heads": settings.whole(key("num_attention_heads", "n_head"), 12),
        "intermediate_size": settings.whole(key("intermediate_size", "n_inner"), 3072),
        "activation": settings.gate(act, "silu") if is_gate else "swiglu",
        "norm": {"eps": settings.number(key("layer_norm_eps", "layer_norm_epsilon"), 1e-12)},
        "projection_bias": "none",
        "feed_forward_bias": False,
        "hidden_dropout": settings.number(key("hidden_dropout_prob", "resid_pdrop"), 0.0),
        "attention_dropout": settings.number(
            key("attention_probs_dropout_prob", "attn_pdrop"), 0.0
        ),
        "initializer_range": settings.number("initializer_range", 0.02),
        "segments": settings.whole("type_vocab_size", 2),
        "token_rows": settings.whole("vocab_size", 30528),
        "mechanism": [_rope(settings)],
    }


def _rope(settings: Settings) -> dict[str, Any]:
    section = settings.section("rope_parameters")
    section.require("rope_type", ["default"], "default")
    base = section.number("rope_theta", settings.number("rotary_emb_base", 1000.0))
    rope: dict[str, Any] = {"name": "rope", "base": base}
    if "rotary_scaling_factor" in settings:
        rope["scaling"] = {
            "kind": "dynamic_ntk",
            "factor": settings.number("rotary_scaling_factor", 1.0),
            "original_length": settings.whole("max_trained_positions", 2048),
        }
    return rope


def _embedding_rules(root: str) -> list[Rule]:
    table = "embeddings.word_embeddings.weight"
    segments = "embeddings.token_type_embeddings.weight"
    return [
        rule(f"{root}{table}", "encoder.tokens.weight"),
        rule(f"{root}{segments}", "encoder.segments.weight"),
        rule(f"{root}emb_ln.{{p}}", "encoder.embedding_norm.{p}"),
        rule(f"{root}embeddings.LayerNorm.{{p}}", "encoder.embedding_norm.{p}"),
    ]


def _layer_rules(old: str) -> list[Rule]:
    """Return the rules of Nomic's names, which transformers saves as well."""
    new = "encoder.layers.{n}"
    parts = [f"{new}.attention.{part}_proj.weight" for part in ("query", "key", "value")]
    names = [
        ("attn.out_proj", "attention.output_proj"),
        ("norm1", "attention_norm"),
        ("mlp.fc11", "feed_forward.inner_proj"),
        ("mlp.fc12", "feed_forward.gate_proj"),
        ("mlp.fc2", "feed_forward.output_proj"),
        ("norm2", "feed_forward_norm"),
    ]
    fused = rule(f"{old}.attn.Wqkv.weight", *parts, convert=row_blocks(3), how="split in thirds")
    return [fused, *_renamed(old, names)]


def _renamed_layer_rules(old: str) -> list[Rule]:
    """Return the rules of the names that transformers has in memory."""
    names = [
        ("self_attn.q_proj", "attention.query_proj"),
        ("self_attn.k_proj", "attention.key_proj"),
        ("self_attn.v_proj", "attention.value_proj"),
        ("self_attn.o_proj", "attention.output_proj"),
        ("post_attention_layernorm", "attention_norm"),
        ("mlp.up_proj", "feed_forward.inner_proj"),
        ("mlp.gate_proj", "feed_forward.gate_proj"),
        ("mlp.down_proj", "feed_forward.output_proj"),
        ("post_mlp_layernorm", "feed_forward_norm"),
    ]
    return _renamed(old, names)


def _renamed(old: str, names: list[tuple[str, str]]) -> list[Rule]:
    return [
        rule(f"{old}.{theirs}.{{p}}", f"encoder.layers.{{n}}.{ours}.{{p}}")
        for theirs, ours in names
    ]
