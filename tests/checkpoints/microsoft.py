"""A DeBERTa v3 as Microsoft's code saves it: its names, its position table, and its forward by hand."""

import json
from pathlib import Path

import torch
from safetensors.torch import save_file
from torch import Tensor
from torch.nn import functional
from transformers import DebertaV2Config, DebertaV2ForMaskedLM

from .originals import VOCAB, stirred

LAYERS, WIDTH, ROWS = 2, 16, 20
CONFIG = {
    "model_type": "deberta-v2",
    "vocab_size": VOCAB,
    "hidden_size": WIDTH,
    "num_hidden_layers": LAYERS,
    "num_attention_heads": 2,
    "intermediate_size": 24,
    "hidden_act": "gelu",
    "layer_norm_eps": 1e-7,
    "max_position_embeddings": ROWS,
    "max_relative_positions": -1,
    "position_buckets": 4,
    "norm_rel_ebd": "layer_norm",
    "share_att_key": True,
    "pos_att_type": "p2c|c2p",
    "relative_attention": True,
    "position_biased_input": False,
    "type_vocab_size": 0,
}


def write(folder: Path) -> tuple[DebertaV2ForMaskedLM, Tensor]:
    """Write such a checkpoint; return the layers as transformers has them, and the table."""
    model = stirred(DebertaV2ForMaskedLM(DebertaV2Config(**CONFIG, legacy=False)))
    table = 0.3 * torch.randn(ROWS, WIDTH, generator=torch.Generator().manual_seed(2))
    tensors = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    assert "lm_predictions.lm_head.dense.weight" in tensors
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps(CONFIG))
    tensors["deberta.embeddings.position_embeddings.weight"] = table
    save_file(tensors, folder / "model.safetensors")
    return model, table


def logits(model: DebertaV2ForMaskedLM, table: Tensor, ids: Tensor, mask: Tensor) -> Tensor:
    """Return the logits of Microsoft's steps: positions added late, the last layer run twice, the head."""
    states = model.deberta(ids, attention_mask=mask, output_hidden_states=True).hidden_states[-2]
    encoder = model.deberta.encoder
    query = table[: ids.shape[1]] + states
    for _ in range(2):
        query, _ = encoder.layer[-1](
            states,
            encoder.get_attention_mask(mask),
            query_states=query,
            relative_pos=encoder.get_rel_pos(states),
            rel_embeddings=encoder.get_rel_embedding(),
        )
    head = model.lm_predictions.lm_head
    hidden = head.LayerNorm(functional.gelu(head.dense(query)))
    return hidden @ model.deberta.embeddings.word_embeddings.weight.T + head.bias
