"""Shaw et al.'s key term: the attention of transformers' Wav2Vec2Bert with relative keys."""

from collections.abc import Callable

import pytest
import torch
from transformers import Wav2Vec2BertConfig
from transformers.models.wav2vec2_bert.modeling_wav2vec2_bert import Wav2Vec2BertSelfAttention

from posattn.bias import Padding
from posattn.testing.mechanism_case import PositionedAttention

from .originals import HEADS, HIDDEN, LENGTHS, TOLERANCE, difference, randomized, sample, shape

Record = Callable[[str, object], None]


@torch.no_grad()
@pytest.mark.parametrize("limit", [4, 1, 40])
def test_attention_equals(limit: int, record_property: Record) -> None:
    config = Wav2Vec2BertConfig(
        hidden_size=HIDDEN,
        num_attention_heads=HEADS,
        position_embeddings_type="relative_key",
        left_max_position_embeddings=limit,
        right_max_position_embeddings=limit,
        attn_implementation="eager",
    )
    original = randomized(Wav2Vec2BertSelfAttention(config))
    mechanism = {"name": "shaw", "max_distance": limit, "adds_to": "keys"}
    ours = PositionedAttention(shape(mechanism=mechanism, attention_dropout=0.0), layer=0).eval()
    names = {
        "linear_q": "query_proj",
        "linear_k": "key_proj",
        "linear_v": "value_proj",
        "linear_out": "output_proj",
        "distance_embedding": "position.parts.shaw.key_table",
    }
    tensors = {}
    for key, value in original.state_dict().items():
        module, kind = key.rsplit(".", 1)
        tensors[f"attention.{names[module]}.{kind}"] = value
    ours.load_state_dict(tensors, strict=True)
    gaps = []
    for length in LENGTHS:
        visible = sample(length).visible
        hidden = torch.randn(3, length, HIDDEN, generator=torch.Generator().manual_seed(length))
        lowest = torch.finfo(torch.float32).min
        mask = torch.zeros(3, 1, 1, length).masked_fill(~visible[:, None, None], lowest)
        theirs = original(hidden, attention_mask=mask)[0]
        positions = torch.arange(length)[None]
        prepared = ours.prepared(positions, positions, Padding(visible))
        gaps.append(difference(ours(hidden, hidden, prepared), theirs, visible))
    record_property("difference", max(gaps))
    assert max(gaps) <= TOLERANCE
