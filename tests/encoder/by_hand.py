"""Attention and encoder layers as loops in float64: the reference of the tests here.

Takes weights from our modules and nothing else; every logit and every softmax is spelled out.
"""

import math
from collections.abc import Callable
from typing import TypeAlias

import torch
from torch import Tensor

from posattn.encoder.layer import EncoderLayer
from posattn.encoder.model import MaskedLanguageModel

Logit: TypeAlias = Callable[[int, int, int, Tensor, Tensor], Tensor]
"""(head, query index, key index, query, key) -> the whole logit before the softmax."""


def plain_logit(head: int, i: int, j: int, query: Tensor, key: Tensor) -> Tensor:
    """Return query . key / sqrt(head_dim)."""
    return query @ key / math.sqrt(len(query))


def alibi_logit(head: int, i: int, j: int, query: Tensor, key: Tensor) -> Tensor:
    """Return the plain logit less the symmetric penalty of two heads."""
    slope = 2.0 ** (-4.0 * (head + 1))
    return plain_logit(head, i, j, query, key) - slope * abs(i - j)


def attention(
    layer: EncoderLayer, queries: Tensor, keys: Tensor, visible: Tensor, logit: Logit
) -> Tensor:
    """Return the projected attended values of one sequence, queries [Q, E] and keys [K, E]."""
    module = layer.attention
    heads = module.num_heads

    def split(projection: torch.nn.Linear, states: Tensor) -> Tensor:
        flat = states @ projection.weight.T
        if projection.bias is not None:
            flat = flat + projection.bias
        return flat.unflatten(-1, (heads, -1))

    query, key = split(module.query_proj, queries), split(module.key_proj, keys)
    value = split(module.value_proj, keys)
    rows = []
    for i in range(len(queries)):
        parts = []
        for head in range(heads):
            weights = [
                logit(head, i, j, query[i, head], key[j, head]).exp() if visible[j] else None
                for j in range(len(keys))
            ]
            total = sum(weight for weight in weights if weight is not None)
            attended = torch.zeros_like(value[0, head])
            for j, weight in enumerate(weights):
                if weight is not None:
                    attended = attended + weight / total * value[j, head]
            parts.append(attended)
        rows.append(torch.cat(parts))
    projection = module.output_proj
    return torch.stack(rows) @ projection.weight.T + projection.bias


def norm(module: torch.nn.Module, states: Tensor) -> Tensor:
    """Return the layer norm of the states."""
    centred = states - states.mean(-1, keepdim=True)
    spread = (centred.pow(2).mean(-1, keepdim=True) + module.eps).sqrt()
    return centred / spread * module.weight + module.bias


def feed_forward(layer: EncoderLayer, states: Tensor) -> Tensor:
    """Return the block with exact gelu, without the residual."""
    block = layer.feed_forward
    inner = states @ block.inner_proj.weight.T + block.inner_proj.bias
    inner = inner * 0.5 * (1 + torch.erf(inner / math.sqrt(2)))
    return inner @ block.output_proj.weight.T + block.output_proj.bias


def post_norm_layer(
    layer: EncoderLayer, queries: Tensor, keys: Tensor, visible: Tensor, logit: Logit
) -> Tensor:
    """Return the states of one sequence after a layer with norms after its residual sums."""
    attended = attention(layer, queries, keys, visible, logit)
    middle = norm(layer.attention_norm, queries + attended)
    return norm(layer.feed_forward_norm, middle + feed_forward(layer, middle))


def pre_norm_layer(
    layer: EncoderLayer, queries: Tensor, keys: Tensor, visible: Tensor, logit: Logit
) -> Tensor:
    """Return the states of one sequence after a layer with norms before its blocks."""
    first, second = layer.attention_norm, layer.feed_forward_norm
    attended = attention(layer, norm(first, queries), norm(first, keys), visible, logit)
    middle = queries + attended
    return middle + feed_forward(layer, norm(second, middle))


def embedded(model: MaskedLanguageModel, ids: Tensor) -> Tensor:
    """Return normed token embeddings of one sequence."""
    return norm(model.encoder.embedding_norm, model.encoder.tokens.weight[ids])
