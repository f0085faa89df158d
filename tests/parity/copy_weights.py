"""From other libraries' names of weights to posattn's, where posattn.checkpoints has no mapping of its own.

Each takes a `Source` and returns tensors that `MaskedLanguageModel.load_state_dict` takes strictly;
`Source.unused()` then names what the function left alone, which should be nothing.
"""

from collections.abc import Mapping
from typing import TypeAlias

import torch
from torch import Tensor

Tensors: TypeAlias = dict[str, Tensor]

SUBLAYERS = {
    "attention.output.dense": "attention.output_proj",
    "attention.output.LayerNorm": "attention_norm",
    "intermediate.dense": "feed_forward.inner_proj",
    "output.dense": "feed_forward.output_proj",
    "output.LayerNorm": "feed_forward_norm",
}
BERT_LAYER = {
    "attention.self.query": "attention.query_proj",
    "attention.self.key": "attention.key_proj",
    "attention.self.value": "attention.value_proj",
    **SUBLAYERS,
}


class Source:
    """A checkpoint's tensors; it remembers which were read."""

    def __init__(self, tensors: Mapping[str, Tensor]) -> None:
        self._tensors = dict(tensors)
        self._used: set[str] = set()

    def __contains__(self, name: str) -> bool:
        return name in self._tensors

    def take(self, name: str) -> Tensor:
        """Return a tensor and mark it as used."""
        self._used.add(name)
        return self._tensors[name].detach().clone()

    def module(self, old: str, new: str) -> Tensors:
        """Return the weight, and the bias if there is one, of a module under its new name."""
        found = {f"{new}.weight": self.take(f"{old}.weight")}
        if f"{old}.bias" in self:
            found[f"{new}.bias"] = self.take(f"{old}.bias")
        return found

    def tied(self, copy: str, original: str) -> None:
        """Mark a second copy of a tensor as used, after a look that it is one."""
        if copy in self and not torch.equal(self.take(copy), self._tensors[original]):
            raise ValueError(f"{copy} is stored apart from {original} and differs from it")

    def unused(self) -> list[str]:
        """Return the names that nothing has read."""
        return sorted(set(self._tensors) - self._used)


def roformer(source: Source, num_layers: int) -> Tensors:
    """Return the weights of transformers' RoFormerForMaskedLM; its sinusoids are not weights."""
    found = _bert_body(source, "roformer", num_layers)
    source.take("roformer.encoder.embed_positions.weight")
    return found | _bert_head(source, "roformer")


def xlnet(source: Source, num_layers: int) -> Tensors:
    """Return the encoder weights of transformers' XLNetModel with token types unused.

    The names start as those of `MaskedLanguageModel` do; there is no head to copy. `mask_emb` serves
    XLNet's second stream, `r_s_bias` and `seg_embed` its segment term: marked as used, left out.
    """
    found = {"encoder.tokens.weight": source.take("word_embedding.weight")}
    source.take("mask_emb")
    for old, new in _layers("layer", num_layers):
        attention, part = f"{old}.rel_attn", f"{new}.attention.position.parts.transformer_xl"
        for letter, name in (("q", "query"), ("k", "key"), ("v", "value")):
            weight = source.take(f"{attention}.{letter}").flatten(1).T
            found[f"{new}.attention.{name}_proj.weight"] = weight
        found[f"{new}.attention.output_proj.weight"] = source.take(f"{attention}.o").flatten(1)
        found[f"{part}.distance_proj.weight"] = source.take(f"{attention}.r").flatten(1).T
        for bias, name in (("r_w_bias", "content"), ("r_r_bias", "distance")):
            found[f"{part}.global_biases.{name}.weight"] = source.take(f"{attention}.{bias}")
        for left_out in ("r_s_bias", "seg_embed"):
            source.take(f"{attention}.{left_out}")
        found |= source.module(f"{attention}.layer_norm", f"{new}.attention_norm")
        found |= source.module(f"{old}.ff.layer_1", f"{new}.feed_forward.inner_proj")
        found |= source.module(f"{old}.ff.layer_2", f"{new}.feed_forward.output_proj")
        found |= source.module(f"{old}.ff.layer_norm", f"{new}.feed_forward_norm")
    return found


def modernbert(source: Source, num_layers: int) -> Tensors:
    """Return the weights of transformers' ModernBertForMaskedLM; biases it lacks are zeros."""
    found = source.module("model.embeddings.tok_embeddings", "encoder.tokens")
    found |= source.module("model.embeddings.norm", "encoder.embedding_norm")
    found |= source.module("model.final_norm", "encoder.final_norm")
    for old, new in _layers("model.layers", num_layers):
        fused = source.take(f"{old}.attn.Wqkv.weight").chunk(3)
        for name, weight in zip(("query", "key", "value"), fused, strict=True):
            found[f"{new}.attention.{name}_proj.weight"] = weight
        found |= source.module(f"{old}.attn.Wo", f"{new}.attention.output_proj")
        found |= _optional(source, f"{old}.attn_norm", f"{new}.attention_norm")  # not in layer 0
        gate, inner = source.take(f"{old}.mlp.Wi.weight").chunk(2)
        found[f"{new}.feed_forward.gate_proj.weight"] = gate
        found[f"{new}.feed_forward.inner_proj.weight"] = inner
        found |= source.module(f"{old}.mlp.Wo", f"{new}.feed_forward.output_proj")
        found |= source.module(f"{old}.mlp_norm", f"{new}.feed_forward_norm")
    found |= source.module("head.dense", "head.proj") | source.module("head.norm", "head.norm")
    source.tied("decoder.weight", "model.embeddings.tok_embeddings.weight")
    found |= _output(source, "decoder.bias", found)
    return found | _zero_biases(found, "norm") | _zero_biases(found, "head.proj")


def x_transformers(source: Source, num_layers: int) -> Tensors:
    """Return the encoder weights of x-transformers' Encoder without GLU; it has no token table.

    Its norms store their weight less one (`unit_offset`).
    """
    found: Tensors = {}
    for index in range(num_layers):
        attention, block = f"layers.{2 * index}", f"layers.{2 * index + 1}"
        new = f"encoder.layers.{index}"
        for letter, name in (("q", "query"), ("k", "key"), ("v", "value"), ("out", "output")):
            weight = source.take(f"{attention}.1.to_{letter}.weight")
            found[f"{new}.attention.{name}_proj.weight"] = weight
        found[f"{new}.attention_norm.weight"] = 1.0 + source.take(f"{attention}.0.0.gamma")
        found |= source.module(f"{block}.1.ff.0.0", f"{new}.feed_forward.inner_proj")
        found |= source.module(f"{block}.1.ff.2", f"{new}.feed_forward.output_proj")
        found[f"{new}.feed_forward_norm.weight"] = 1.0 + source.take(f"{block}.0.0.gamma")
    found["encoder.final_norm.weight"] = 1.0 + source.take("final_norm.gamma")
    for computed in ("rotary_pos_emb.inv_freq", "rotary_pos_emb.scale", "polar_pos_emb.inv_freq"):
        if computed in source:
            source.take(computed)
    return found | _zero_biases(found, "norm")


def t5(source: Source, num_layers: int) -> Tensors:
    """Return the encoder weights of transformers' T5EncoderModel without gated feed-forward blocks."""
    found = source.module("shared", "encoder.tokens")
    source.tied("encoder.embed_tokens.weight", "shared.weight")
    for index in range(num_layers):
        old, new = f"encoder.block.{index}.layer", f"encoder.layers.{index}"
        for letter, name in (("q", "query"), ("k", "key"), ("v", "value"), ("o", "output")):
            found |= source.module(
                f"{old}.0.SelfAttention.{letter}", f"{new}.attention.{name}_proj"
            )
        found |= source.module(f"{old}.0.layer_norm", f"{new}.attention_norm")
        found |= source.module(f"{old}.1.DenseReluDense.wi", f"{new}.feed_forward.inner_proj")
        found |= source.module(f"{old}.1.DenseReluDense.wo", f"{new}.feed_forward.output_proj")
        found |= source.module(f"{old}.1.layer_norm", f"{new}.feed_forward_norm")
    first = "encoder.block.0.layer.0.SelfAttention.relative_attention_bias"
    found |= source.module(first, _table("t5"))
    return found | source.module("encoder.final_layer_norm", "encoder.final_norm")


def _table(mechanism: str) -> str:
    return f"encoder.position.mechanisms.{mechanism}.table"


def _layers(prefix: str, num_layers: int) -> list[tuple[str, str]]:
    return [(f"{prefix}.{index}", f"encoder.layers.{index}") for index in range(num_layers)]


def _modules(source: Source, old: str, new: str, names: Mapping[str, str]) -> Tensors:
    found: Tensors = {}
    for old_name, new_name in names.items():
        found |= source.module(f"{old}.{old_name}", f"{new}.{new_name}")
    return found


def _optional(source: Source, old: str, new: str) -> Tensors:
    return source.module(old, new) if f"{old}.weight" in source else {}


def _bert_body(source: Source, root: str, num_layers: int) -> Tensors:
    found = source.module(f"{root}.embeddings.word_embeddings", "encoder.tokens")
    found |= source.module(f"{root}.embeddings.token_type_embeddings", "encoder.segments")
    found |= source.module(f"{root}.embeddings.LayerNorm", "encoder.embedding_norm")
    for old, new in _layers(f"{root}.encoder.layer", num_layers):
        found |= _modules(source, old, new, BERT_LAYER)
    return found


def _bert_head(source: Source, root: str) -> Tensors:
    head = "cls.predictions"
    found = source.module(f"{head}.transform.dense", "head.proj")
    found |= source.module(f"{head}.transform.LayerNorm", "head.norm")
    tokens = f"{root}.embeddings.word_embeddings.weight"
    source.tied(f"{head}.decoder.weight", tokens)
    source.tied(f"{head}.decoder.bias", f"{head}.bias")
    return found | {
        "head.output.weight": source.take(tokens),
        "head.output.bias": source.take(f"{head}.bias"),
    }


def _output(source: Source, bias: str, found: Tensors) -> Tensors:
    tokens = found["encoder.tokens.weight"]
    return {"head.output.weight": tokens, "head.output.bias": source.take(bias)}


def _zero_biases(found: Tensors, suffix: str) -> Tensors:
    names = [name for name in found if name.endswith(f"{suffix}.weight")]
    return {f"{name[:-6]}bias": torch.zeros(len(found[name])) for name in names}
