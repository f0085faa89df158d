"""Small random DeBERTa models of transformers, and what is compared between two of them."""

from typing import Any

import torch
from torch import Tensor, nn
from transformers import (
    DebertaConfig,
    DebertaForTokenClassification,
    DebertaModel,
    DebertaV2Config,
    DebertaV2ForSequenceClassification,
    DebertaV2Model,
)

SIZE: dict[str, Any] = {
    "vocab_size": 40,
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 48,
    "relative_attention": True,
    "pos_att_type": ["c2p", "p2c"],
    "position_biased_input": False,
    "type_vocab_size": 0,
    "initializer_range": 0.1,
}
V3 = {
    "share_att_key": True,
    "position_buckets": 8,
    "max_relative_positions": 20,
    "norm_rel_ebd": "layer_norm",
}
KINDS: dict[str, tuple[type[Any], type[Any], dict[str, Any]]] = {
    "v1": (DebertaConfig, DebertaModel, {"max_relative_positions": 12}),
    "v1 c2p": (DebertaConfig, DebertaModel, {"pos_att_type": ["c2p"]}),
    "v1 absolute": (DebertaConfig, DebertaModel, {"relative_attention": False, "pos_att_type": []}),
    "v1 labels": (DebertaConfig, DebertaForTokenClassification, {"num_labels": 3}),
    "v2": (DebertaV2Config, DebertaV2Model, {"conv_kernel_size": 3, "max_relative_positions": 9}),
    "v3": (DebertaV2Config, DebertaV2Model, V3),
    "v3 p2c": (DebertaV2Config, DebertaV2Model, {**V3, "pos_att_type": ["p2c"]}),
    "v3 labels": (DebertaV2Config, DebertaV2ForSequenceClassification, V3),
}


def made(kind: str, **options: Any) -> Any:
    """A model with random weights, biases included, in evaluation mode."""
    config, model, given = KINDS[kind]
    torch.manual_seed(1)
    found = model(config(**{**SIZE, **given, **options})).eval()
    with torch.no_grad():
        for name, parameter in found.named_parameters():
            if name.endswith("bias"):
                parameter.normal_(std=0.1)
    return found


def tokens(length: int = 37) -> dict[str, Tensor]:
    """Two texts, the second padded."""
    generator = torch.Generator().manual_seed(2)
    ids = torch.randint(5, 40, (2, length), generator=generator)
    mask = torch.ones_like(ids)
    mask[1, length - 6 :] = 0
    return {"input_ids": ids.masked_fill(mask == 0, 0), "attention_mask": mask}


@torch.no_grad()
def first_output(model: nn.Module, length: int = 37, **options: Any) -> Tensor:
    """What the model returns for real tokens, or for the texts where it returns labels of those."""
    given = tokens(length)
    found: Tensor = model(**given, **options)[0]
    return found[given["attention_mask"].bool()] if found.dim() == 3 else found
