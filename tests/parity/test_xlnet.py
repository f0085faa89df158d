"""XLNet's relative attention: Transformer-XL's four terms, in both directions, with segment memory."""

from collections.abc import Callable

import pytest
import torch
from torch import Tensor
from transformers import XLNetConfig, XLNetModel

from posattn.encoder.encoder import Encoder

from .originals import (
    HEADS,
    HIDDEN,
    INNER,
    LAYERS,
    LENGTHS,
    TOLERANCE,
    VOCAB,
    difference,
    imported_encoder,
    randomized,
    sample,
    shape,
)

Record = Callable[[str, object], None]


def pair(
    attention: str = "bi", memory: int = 0, clamp: int | None = None, untie: bool = True
) -> tuple[XLNetModel, Encoder]:
    """Return transformers' model and our encoder with its weights."""
    config = XLNetConfig(
        vocab_size=VOCAB,
        d_model=HIDDEN,
        n_layer=LAYERS,
        n_head=HEADS,
        d_inner=INNER,
        attn_type=attention,
        clamp_len=clamp or -1,
        mem_len=memory or None,
    )
    original = randomized(XLNetModel(config))
    if not untie:
        _tie(original)
    mechanism = {
        "name": "transformer_xl",
        "bidirectional": attention == "bi",
        "untie": True,
        "segment_term": True,
        "memory_length": memory,
        "clamp_distance": clamp,
    }
    norm = {"eps": config.layer_norm_eps}
    options = {"projection_bias": "none", "embedding_norm": False, "norm": norm}
    ours = shape(**options, mechanism=mechanism)
    encoder = imported_encoder(original, ours, unused=("mask_emb",), attn_type="bi")
    if untie:
        return original, encoder
    tied = Encoder(shape(**options, mechanism=mechanism | {"untie": False}), VOCAB)
    tied.load_state_dict(_tied(encoder.state_dict()), strict=True)
    return original, tied.eval()


@torch.no_grad()
@pytest.mark.parametrize("clamp", [None, 3], ids=["unlimited", "clamped"])
def test_states_equal(clamp: int | None, record_property: Record) -> None:
    original, encoder = pair(clamp=clamp)
    gaps = []
    for length in LENGTHS:
        ids, visible, segments = given = sample(length)
        for of_tokens in (None, segments):
            theirs = original(
                ids, attention_mask=given.attention_mask.float(), token_type_ids=of_tokens
            ).last_hidden_state
            ours = encoder(ids, visible=visible, segments=of_tokens)
            gaps.append(difference(ours, theirs, visible))
    record_property("difference", max(gaps))
    assert max(gaps) <= TOLERANCE


@torch.no_grad()
@pytest.mark.parametrize("clamp", [None, 3], ids=["unlimited", "clamped"])
def test_states_of_the_causal_form_equal(clamp: int | None, record_property: Record) -> None:
    original, encoder = pair("uni", clamp=clamp)
    gaps = []
    for length in LENGTHS:  # transformers' causal form cannot take padding of several sequences
        ids = sample(length).ids
        gaps.append(difference(encoder(ids), original(ids).last_hidden_state))
    record_property("difference", max(gaps))
    assert max(gaps) <= TOLERANCE


@torch.no_grad()
def test_states_equal_where_layers_share_u_and_v(record_property: Record) -> None:
    original, encoder = pair(untie=False)
    ids, visible, segments = given = sample(11)
    theirs = original(
        ids, attention_mask=given.attention_mask.float(), token_type_ids=segments
    ).last_hidden_state
    gap = difference(encoder(ids, visible=visible, segments=segments), theirs, visible)
    record_property("difference", gap)
    assert gap <= TOLERANCE


@torch.no_grad()
@pytest.mark.parametrize("attention", ["bi", "uni"])
def test_three_segments_with_memory_equal(attention: str, record_property: Record) -> None:
    original, encoder = pair(attention, memory=4)
    gaps, theirs, memory = [], None, encoder.empty_memory(3)
    for length in (5, 3, 7):  # memory of 4: cut, then reaching over two segments, then cut again
        ids = sample(length).ids.clamp(min=3)
        output = original(ids, mems=None if theirs is None else theirs, use_mems=True)
        theirs = output.mems
        context = encoder.begin(ids, memory=memory)
        inputs = encoder.run(encoder.embed(ids, None, context), context)
        ours = encoder.finish(encoder.last(inputs[-1], context))
        memory = context.remember(inputs)
        gaps.append(difference(ours, output.last_hidden_state))
        assert memory is not None
        kept = [
            state[:, 4 - mem.shape[0] :] for state, mem in zip(memory.states, theirs, strict=True)
        ]
        gaps += [
            difference(state, mem.transpose(0, 1)) for state, mem in zip(kept, theirs, strict=True)
        ]
    record_property("difference", max(gaps))
    assert max(gaps) <= TOLERANCE


def _tie(original: XLNetModel) -> None:
    first = original.layer[0].rel_attn
    for layer in original.layer:
        layer.rel_attn.r_w_bias = first.r_w_bias
        layer.rel_attn.r_r_bias = first.r_r_bias
        layer.rel_attn.r_s_bias = first.r_s_bias


def _tied(tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    """Return the weights with the first layer's u and v as those of all layers."""
    part = "attention.position.parts.transformer_xl.global_biases"
    first = {key: value for key, value in tensors.items() if f"layers.0.{part}" in key}
    kept = {key: value for key, value in tensors.items() if part not in key}
    home = "position.mechanisms.transformer_xl.global_biases"
    return kept | {key.replace(f"layers.0.{part}", home): value for key, value in first.items()}
