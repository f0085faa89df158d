"""Small models for the tests of the encoder, and the mechanisms that all of them go through."""

from typing import Any

import torch
from pydantic import TypeAdapter
from torch import Tensor

import posattn.encoder.mask_decoder  # noqa: F401 - registers emd
from posattn.encoder.config import EncoderConfig
from posattn.encoder.decoder import AnyDecoderConfig, DecoderConfig
from posattn.encoder.init import named_generator
from posattn.encoder.model import MaskedLanguageModel

VOCAB, HIDDEN, HEADS = 13, 16, 2

CLIPPED = {"name": "clipped", "max_distance": 3}
LOG = {"name": "log", "num_buckets": 4, "max_distance": 9, "beyond": "held"}

MECHANISMS: dict[str, dict[str, Any]] = {
    "none": {"name": "none"},
    "learned": {"name": "learned", "max_positions": 32},
    "learned, RoBERTa": {"name": "learned", "max_positions": 32, "padding_row": 1},
    "sinusoidal": {"name": "sinusoidal"},
    "sinusoidal, learned scale": {"name": "sinusoidal", "learned_scale": True},
    "rope": {"name": "rope"},
    "rope, dynamic ntk": {
        "name": "rope",
        "scaling": {"kind": "dynamic_ntk", "factor": 2.0, "original_length": 4},
    },
    "xpos": {"name": "xpos", "causal": True},
    "cape": {"name": "cape"},
    "mlp": {"name": "mlp"},
    "relative_logits": {"name": "relative_logits", "extent": 4},
    "pope": {"name": "pope"},
    "cope": {"name": "cope"},
    "dape": {"name": "dape"},
    "randomized": {"name": "randomized", "max_position": 64},
    "rope, interleaved half": {"name": "rope", "layout": "interleaved", "fraction": 0.5},
    "alibi": {"name": "alibi"},
    "alibi, halves": {"name": "alibi", "variant": "halves"},
    "alibi, separate": {"name": "alibi", "variant": "separate", "learned_slopes": True},
    "alibi, offset": {"name": "alibi", "variant": "offset"},
    "transformer_xl": {"name": "transformer_xl"},
    "transformer_xl, causal": {"name": "transformer_xl", "bidirectional": False, "untie": True},
    "disentangled": {"name": "disentangled", "buckets": LOG},
    "disentangled, v1": {
        "name": "disentangled",
        "buckets": CLIPPED,
        "projections": "own",
        "norm_table": False,
    },
    "disentangled, p2p": {
        "name": "disentangled",
        "buckets": CLIPPED,
        "p2p": True,
        "p2c_index": "paper",
    },
    "t5": {"name": "t5", "num_buckets": 6, "max_distance": 5},
    "shaw, keys": {"name": "shaw", "max_distance": 3, "adds_to": "keys"},
    "shaw": {"name": "shaw", "max_distance": 3},
    "kerple": {"name": "kerple"},
    "sandwich": {"name": "sandwich", "width": 6},
    "fire": {"name": "fire", "hidden_width": 4, "first_threshold": 3.0},
    "fire, shared": {"name": "fire", "shared": True, "form": "sign_input"},
    "tupe": {
        "name": "tupe",
        "max_positions": 32,
        "relative": {"num_buckets": 8, "max_distance": 20},
    },
}


def config(mechanism: Any = "none", **options: Any) -> EncoderConfig:
    """Return a small encoder without dropout."""
    shape = {
        "hidden_size": HIDDEN,
        "num_layers": 2,
        "num_heads": HEADS,
        "intermediate_size": 20,
        "hidden_dropout": 0.0,
        "attention_dropout": 0.0,
    }
    return EncoderConfig(**(shape | {"mechanism": mechanism} | options))


def decoder(options: Any = "plain") -> DecoderConfig:
    """Return the options of a decoder from what a recipe would say."""
    found: DecoderConfig = TypeAdapter(AnyDecoderConfig).validate_python(options)
    return found


def model(
    mechanism: Any = "none", decode: Any = "plain", seed: int = 0, **options: Any
) -> MaskedLanguageModel:
    """Return a small model in evaluation mode; no parameter is 0, so that each one matters."""
    made = MaskedLanguageModel(config(mechanism, **options), decoder(decode), VOCAB)
    return stirred(made, seed).eval()


def stirred(model: MaskedLanguageModel, seed: int) -> MaskedLanguageModel:
    """Return the model with noise of (seed, name) in every parameter, norms around 1."""
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            noise = 0.3 * torch.randn(parameter.shape, generator=named_generator(seed, name))
            is_norm = "norm" in name and name.endswith("weight")
            parameter.copy_(noise + 1.0 if is_norm else noise)
    return model


def ids(batch: int, length: int, seed: int = 0) -> Tensor:
    """Return random token ids."""
    generator = torch.Generator().manual_seed(100 * seed + length)
    return torch.randint(0, VOCAB, (batch, length), generator=generator)


def largest(first: Tensor, second: Tensor) -> float:
    """Return the largest absolute difference; 0 for nothing at all."""
    assert first.shape == second.shape
    return float((first - second).abs().max()) if first.numel() else 0.0
