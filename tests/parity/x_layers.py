"""x-transformers' attention layers, and our encoder with their weights."""

import warnings
from collections.abc import Callable
from typing import Any

import torch
from x_transformers.x_transformers import AttentionLayers

from posattn.encoder.config import EncoderConfig
from posattn.encoder.encoder import Encoder

from .copy_weights import Source, Tensors, x_transformers
from .originals import HEADS, HIDDEN, VOCAB, randomized

DEPTH = 2


def pair(
    kind: type[AttentionLayers],
    mechanism: dict[str, Any],
    own: Callable[[Source], Tensors] | None = None,
    **options: Any,
) -> tuple[AttentionLayers, Encoder]:
    """Return their layers and our encoder with their weights; `own` takes those of the mechanism."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        original = kind(
            dim=HIDDEN,
            depth=DEPTH,
            heads=HEADS,
            attn_dim_head=HIDDEN // HEADS,
            ff_mult=2,
            verbose=False,
            **options,
        )
    original = randomized(original)
    config = EncoderConfig(
        hidden_size=HIDDEN,
        num_layers=DEPTH,
        num_heads=HEADS,
        intermediate_size=2 * HIDDEN,
        embedding_norm=False,
        projection_bias="none",
        norm={"placement": "pre", "eps": 1e-5},
        mechanism=mechanism,
    )
    source = Source(original.state_dict())
    found = x_transformers(source, DEPTH) | ({} if own is None else own(source))
    tensors = {key.removeprefix("encoder."): value for key, value in found.items()}
    assert source.unused() == []
    encoder = Encoder(config, VOCAB).eval()
    generator = torch.Generator().manual_seed(2)
    tensors["tokens.weight"] = torch.randn(VOCAB, HIDDEN, generator=generator)
    encoder.load_state_dict(tensors, strict=True)
    return original, encoder
