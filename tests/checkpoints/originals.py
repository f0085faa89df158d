"""Random models of transformers, saved as people save them, imported by our command's path, and compared."""

from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from transformers import (
    BertConfig,
    BertForMaskedLM,
    DebertaConfig,
    DebertaForMaskedLM,
    DebertaV2Config,
    DebertaV2ForMaskedLM,
    RobertaConfig,
    RobertaForMaskedLM,
    XLMRobertaConfig,
    XLMRobertaForMaskedLM,
)

from posattn.checkpoints import Pretrained, from_pretrained, import_checkpoint

TOLERANCE = 1e-5
VOCAB = 31
SIZES: dict[str, dict[str, Any]] = {
    "tiny": {
        "vocab_size": VOCAB,
        "hidden_size": 24,
        "num_attention_heads": 4,
        "num_hidden_layers": 3,
        "intermediate_size": 40,
    },
    "base": {
        "vocab_size": VOCAB,
        "hidden_size": 768,
        "num_attention_heads": 12,
        "num_hidden_layers": 2,
        "intermediate_size": 3072,
    },
}
V1 = {
    "relative_attention": True,
    "pos_att_type": ["c2p", "p2c"],
    "max_relative_positions": 8,
    "position_biased_input": False,
    "type_vocab_size": 0,
}
V3 = {
    **V1,
    "pos_att_type": ["p2c", "c2p"],
    "share_att_key": True,
    "position_buckets": 8,
    "max_relative_positions": 40,
    "norm_rel_ebd": "layer_norm",
}


class Kind(NamedTuple):
    """A model class with its config, and options beside the size."""

    model: type
    config: type
    options: dict[str, Any]
    lengths: tuple[int, ...] = (1, 7, 24)


KINDS = {
    "bert": Kind(BertForMaskedLM, BertConfig, {"max_position_embeddings": 24}),
    "roberta": Kind(
        RobertaForMaskedLM,
        RobertaConfig,
        {"max_position_embeddings": 26, "type_vocab_size": 1, "pad_token_id": 1},
    ),
    "xlm-roberta": Kind(
        XLMRobertaForMaskedLM,
        XLMRobertaConfig,
        {"max_position_embeddings": 26, "type_vocab_size": 1, "pad_token_id": 1},
    ),
    "deberta": Kind(DebertaForMaskedLM, DebertaConfig, V1),  # 24 is past the table's 8
    "deberta v1, one term, input positions": Kind(
        DebertaForMaskedLM,
        DebertaConfig,
        V1
        | {
            "pos_att_type": ["p2c"],
            "position_biased_input": True,
            "max_position_embeddings": 24,
            "type_vocab_size": 2,
            "legacy": False,
        },
    ),
    "deberta v3": Kind(DebertaV2ForMaskedLM, DebertaV2Config, V3, (1, 7, 40)),
    "deberta v2 xlarge": Kind(
        DebertaV2ForMaskedLM,
        DebertaV2Config,
        V3 | {"conv_kernel_size": 3, "conv_act": "gelu", "hidden_act": "gelu_new", "legacy": False},
    ),
    "deberta v2, own projections": Kind(
        DebertaV2ForMaskedLM,
        DebertaV2Config,
        V3 | {"share_att_key": False, "norm_rel_ebd": "none", "conv_kernel_size": 5},
    ),
    "deberta v2, narrow table, clipped": Kind(
        DebertaV2ForMaskedLM,
        DebertaV2Config,
        V3
        | {
            "embedding_size": 16,
            "position_buckets": -1,
            "max_relative_positions": -1,
            "max_position_embeddings": 24,
            "position_biased_input": True,
            "type_vocab_size": 2,
        },
    ),
}


class Sample(NamedTuple):
    """Three sequences: a full one, one half padding on the right, one token alone."""

    ids: Tensor
    visible: Tensor
    segments: Tensor


def sample(length: int, pad: int = 0) -> Sample:
    """Return random sequences of odd and even length."""
    generator = torch.Generator().manual_seed(length)
    ids = torch.randint(3, VOCAB, (3, length), generator=generator)
    counts = torch.tensor([length, length - length // 2, 1])
    visible = torch.arange(length) < counts[:, None]
    segments = (torch.arange(length) >= length // 3).long().expand(3, -1)
    return Sample(ids.masked_fill(~visible, pad), visible, segments)


def made(kind: Kind, size: str = "tiny", model: type | None = None, **options: Any) -> Any:
    """Return a random model in evaluation mode; biases and norms are random too."""
    original = (model or kind.model)(kind.config(**(SIZES[size] | kind.options | options)))
    return stirred(original, 0.2 if size == "tiny" else 0.03)


def stirred(model: Any, spread: float = 0.2) -> Any:
    """Return the model with every parameter random, norms around 1."""
    generator = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            noise = spread * torch.randn(parameter.shape, generator=generator)
            is_norm = "norm" in name.lower() and not name.endswith("bias")
            parameter.copy_(1.0 + noise if is_norm else noise)
    return model.eval()


def through_our_hands(original: nn.Module, folder: Path, **options: Any) -> Pretrained:
    """Return the model, saved by transformers, imported into a folder, and loaded from there."""
    original.save_pretrained(folder / "theirs")
    import_checkpoint(folder / "theirs", folder / "ours", **options)
    return from_pretrained(folder / "ours")


def segments_for(found: Pretrained, segments: Tensor) -> Tensor | None:
    """Return the segment ids if the encoder can tell segments apart."""
    config = found.encoder.config
    return segments if config.segments > 1 or config.reads_segments() else None


def theirs(model: Any, given: Sample) -> dict[str, Any]:
    """Return the inputs of a model of transformers."""
    inputs: dict[str, Any] = {"input_ids": given.ids, "attention_mask": given.visible.long()}
    if getattr(model.config, "type_vocab_size", 0) > 1:
        inputs["token_type_ids"] = given.segments
    return inputs


def all_states(found: Pretrained, given: Sample) -> list[Tensor]:
    """Return the embeddings and the states after every layer."""
    encoder = found.encoder
    segments = segments_for(found, given.segments)
    context = encoder.begin(given.ids, visible=given.visible, segments=segments)
    embedded = encoder.embed(given.ids, segments, context)
    inputs = encoder.run(embedded, context)
    return [*inputs, encoder.finish(encoder.last(inputs[-1], context))]


def gap(ours: Tensor, original: Tensor, visible: Tensor | None = None) -> float:
    """Return the largest difference at real tokens."""
    assert ours.shape == original.shape
    found = (ours - original).abs()
    return float((found if visible is None else found[visible]).max())
