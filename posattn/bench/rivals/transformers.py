"""Encoders of Hugging Face transformers, each with the fastest attention that it has for the model."""

from abc import abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar, final

import torch
from torch import nn
from typing_extensions import override

from posattn.bench.entrant import Rival, States, Weights, renamed
from posattn.bench.inputs import Ids, Visible
from posattn.bench.plan import ModelSize, Stage

BERT_NAMES = {
    "embeddings.word_embeddings.": "tokens.",
    "embeddings.token_type_embeddings.": "segments.",
    "embeddings.position_embeddings.": "position.mechanisms.learned.table.",
    "embeddings.LayerNorm.": "embedding_norm.",
    "encoder.layer.": "layers.",
    "attention.self.query.": "attention.query_proj.",
    "attention.self.key.": "attention.key_proj.",
    "attention.self.value.": "attention.value_proj.",
    "attention.output.dense.": "attention.output_proj.",
    "attention.output.LayerNorm.": "attention_norm.",
    "intermediate.dense.": "feed_forward.inner_proj.",
    "output.dense.": "feed_forward.output_proj.",
    "output.LayerNorm.": "feed_forward_norm.",
}
DEBERTA_NAMES = {
    "attention.self.": "attention.",
    **BERT_NAMES,
    "encoder.rel_embeddings.": "position.mechanisms.disentangled.table.",
    "encoder.LayerNorm.": "position.mechanisms.disentangled.table_norm.",
}
T5_NAMES = {
    "shared.": "tokens.",
    "encoder.block.0.layer.0.SelfAttention.relative_attention_bias.": (
        "position.mechanisms.t5.table."
    ),
    "encoder.block.": "layers.",
    "layer.0.SelfAttention.q.": "attention.query_proj.",
    "layer.0.SelfAttention.k.": "attention.key_proj.",
    "layer.0.SelfAttention.v.": "attention.value_proj.",
    "layer.0.SelfAttention.o.": "attention.output_proj.",
    "layer.0.layer_norm.": "attention_norm.",
    "layer.1.DenseReluDense.wi.": "feed_forward.inner_proj.",
    "layer.1.DenseReluDense.wo.": "feed_forward.output_proj.",
    "layer.1.layer_norm.": "feed_forward_norm.",
    "encoder.final_layer_norm.": "final_norm.",
}
MODERNBERT_NAMES = {
    "embeddings.tok_embeddings.": "tokens.",
    "embeddings.norm.": "embedding_norm.",
    "attn.Wo.": "attention.output_proj.",
    "attn_norm.": "attention_norm.",
    "mlp.Wo.": "feed_forward.output_proj.",
    "mlp_norm.": "feed_forward_norm.",
}


class TransformersEncoder(Rival):
    """A model of transformers, built from its configuration."""

    library = "transformers"
    package = "transformers"
    attention: ClassVar[str] = "eager"
    names: ClassVar[Mapping[str, str]] = BERT_NAMES
    more: ClassVar[Mapping[str, Any]] = {}  # what its forward is told beside the tokens

    @abstractmethod
    def make(self, transformers: Any, size: ModelSize) -> nn.Module:
        """Return the model, given the library."""

    @override
    def build(self, size: ModelSize, stage: Stage, device: torch.device) -> nn.Module:
        import transformers

        return self.make(transformers, size).train(stage == "training")

    @override
    def weights(self, model: Any) -> Weights:
        return renamed(model, self.names)

    @override
    def states(self, model: nn.Module, ids: Ids, visible: Visible | None = None) -> States:
        mask = {} if visible is None else {"attention_mask": visible.long()}
        return model(ids, **mask, **self.more).last_hidden_state

    @override
    def runs_on(self, model: nn.Module) -> str:
        return self.attention

    def sizes(self, size: ModelSize) -> dict[str, Any]:
        """Return the options that most configurations share."""
        return {
            "vocab_size": size.vocab_size,
            "hidden_size": size.hidden_size,
            "num_attention_heads": size.num_heads,
            "num_hidden_layers": size.num_layers,
            "intermediate_size": size.intermediate_size,
            "hidden_dropout_prob": 0.0,
            "attention_probs_dropout_prob": 0.0,
            "attn_implementation": self.attention,
        }


@final
class Bert(TransformersEncoder):
    """BertModel on SDPA."""

    name = "transformers BERT"
    attention = "sdpa"

    @override
    def make(self, transformers: Any, size: ModelSize) -> nn.Module:
        config = transformers.BertConfig(**self.sizes(size), max_position_embeddings=4096)
        return transformers.BertModel(config, add_pooling_layer=False)


@final
class RoFormer(TransformersEncoder):
    """RoFormerModel, which has eager attention only."""

    name = "transformers RoFormer"

    @override
    def make(self, transformers: Any, size: ModelSize) -> nn.Module:
        config = transformers.RoFormerConfig(**self.sizes(size), max_position_embeddings=4096)
        return transformers.RoFormerModel(config)


class DebertaV3(TransformersEncoder):
    """DebertaV2Model with the options of DeBERTa-v3-base; it has eager attention only."""

    name = "transformers DeBERTa-v3"
    names = DEBERTA_NAMES

    @override
    def make(self, transformers: Any, size: ModelSize) -> nn.Module:
        return transformers.DebertaV2Model(self.config(transformers, size))

    def config(self, transformers: Any, size: ModelSize) -> Any:
        """Return the configuration of DeBERTa-v3-base at this size."""
        sizes = self.sizes(size)
        del sizes["attn_implementation"]
        return transformers.DebertaV2Config(
            **sizes,
            relative_attention=True,
            pos_att_type=["p2c", "c2p"],
            share_att_key=True,
            position_buckets=256,
            max_relative_positions=512,
            max_position_embeddings=512,
            norm_rel_ebd="layer_norm",
            position_biased_input=False,
            type_vocab_size=0,
            layer_norm_eps=1e-7,
        )


@final
class T5(TransformersEncoder):
    """T5EncoderModel on SDPA."""

    name = "transformers T5"
    attention = "sdpa"
    names = T5_NAMES

    @override
    def make(self, transformers: Any, size: ModelSize) -> nn.Module:
        config = transformers.T5Config(
            vocab_size=size.vocab_size,
            d_model=size.hidden_size,
            d_kv=size.hidden_size // size.num_heads,
            d_ff=size.intermediate_size,
            num_layers=size.num_layers,
            num_heads=size.num_heads,
            dropout_rate=0.0,
            attn_implementation=self.attention,
        )
        return transformers.T5EncoderModel(config)


@final
class ModernBert(TransformersEncoder):
    """ModernBertModel on SDPA: global attention in every third layer, local in the others."""

    name = "transformers ModernBERT"
    attention = "sdpa"
    names = MODERNBERT_NAMES

    @override
    def make(self, transformers: Any, size: ModelSize) -> nn.Module:
        special = dict.fromkeys(("bos_token_id", "cls_token_id"), 1)
        special |= dict.fromkeys(("eos_token_id", "sep_token_id"), 2)
        sizes = {k: v for k, v in self.sizes(size).items() if "dropout" not in k}
        config = transformers.ModernBertConfig(
            **sizes, **special, pad_token_id=0, max_position_embeddings=4096
        )
        return transformers.ModernBertModel(config)

    @override
    def weights(self, model: Any) -> Weights:
        found = super().weights(model)
        for index in range(len(model.layers)):
            layer = f"layers.{index}"
            fused = found.pop(f"{layer}.attn.Wqkv.weight").chunk(3)
            for name, view in zip(("query", "key", "value"), fused, strict=True):
                found[f"{layer}.attention.{name}_proj.weight"] = view
            gate, inner = found.pop(f"{layer}.mlp.Wi.weight").chunk(2)
            found[f"{layer}.feed_forward.gate_proj.weight"] = gate
            found[f"{layer}.feed_forward.inner_proj.weight"] = inner
        return found


@final
class XLNet(TransformersEncoder):
    """XLNetModel in both directions without memory, which has eager attention only."""

    name = "transformers XLNet"
    more: ClassVar[Mapping[str, Any]] = {"use_mems": False}

    @override
    def make(self, transformers: Any, size: ModelSize) -> nn.Module:
        config = transformers.XLNetConfig(
            vocab_size=size.vocab_size,
            d_model=size.hidden_size,
            n_layer=size.num_layers,
            n_head=size.num_heads,
            d_inner=size.intermediate_size,
            dropout=0.0,
        )
        return transformers.XLNetModel(config)

    @override
    def weights(self, model: Any) -> Weights:
        found = renamed(model, {"word_embedding.": "tokens."})
        for index in range(len(model.layer)):
            old, new = f"layer.{index}.rel_attn", f"layers.{index}.attention"
            part = f"{new}.position.parts.transformer_xl"
            for letter, name in (("q", "query"), ("k", "key"), ("v", "value")):
                found[f"{new}.{name}_proj.weight"] = found[f"{old}.{letter}"].flatten(1).T
            found[f"{new}.output_proj.weight"] = found[f"{old}.o"].flatten(1)
            found[f"{part}.distance_proj.weight"] = found[f"{old}.r"].flatten(1).T
            for bias, name in (("r_w_bias", "content"), ("r_r_bias", "distance")):
                found[f"{part}.global_biases.{name}.weight"] = found[f"{old}.{bias}"]
            for end in ("weight", "bias"):
                for inner, name in (("layer_1", "inner"), ("layer_2", "output")):
                    source = found[f"layer.{index}.ff.{inner}.{end}"]
                    found[f"layers.{index}.feed_forward.{name}_proj.{end}"] = source
        return found
