"""Microsoft's enhanced mask decoder, with transformers' DeBERTa v2 layers in Microsoft's steps.

    z_states = position table + hidden_states[-2]
    for layer in [encoder.layer[-1]] * 2: z_states = layer(hidden_states[-2], query_states=z_states)

Source of the steps: microsoft/DeBERTa, apps/models/masked_language_model.py (2023-03-25).
"""

from collections.abc import Callable

import pytest
import torch
from torch import Tensor
from transformers import DebertaV2Config, DebertaV2ForMaskedLM

from posattn.encoder.mask_decoder import MaskDecoderConfig
from posattn.encoder.model import MaskedLanguageModel
from posattn.mechanisms import LearnedConfig

from .originals import (
    HIDDEN,
    LENGTHS,
    SHAPE,
    TOLERANCE,
    Sample,
    difference,
    imported,
    randomized,
    sample,
    shape,
)

Record = Callable[[str, object], None]
EPS = 1e-7


def original() -> DebertaV2ForMaskedLM:
    """Return a DeBERTa v3 of transformers; it has no mask decoder of its own."""
    config = DebertaV2Config(
        **{key: value for key, value in SHAPE.items() if key != "attn_implementation"},
        relative_attention=True,
        pos_att_type=["c2p", "p2c"],
        share_att_key=True,
        position_buckets=8,
        max_relative_positions=40,
        norm_rel_ebd="layer_norm",
        position_biased_input=False,
        type_vocab_size=0,
        layer_norm_eps=EPS,
        legacy=False,
    )
    return randomized(DebertaV2ForMaskedLM(config))


def microsoft(model: DebertaV2ForMaskedLM, table: Tensor, given: Sample, runs: int) -> Tensor:
    """Return the logits of Microsoft's steps."""
    encoder = model.deberta.encoder
    output = model.deberta(
        given.ids, attention_mask=given.attention_mask, output_hidden_states=True
    )
    hidden = output.hidden_states[-2]
    mask = encoder.get_attention_mask(given.attention_mask)
    z_states = table[: given.ids.shape[1]] + hidden
    for _ in range(runs):
        z_states, _ = encoder.layer[-1](
            hidden,
            mask,
            query_states=z_states,
            relative_pos=encoder.get_rel_pos(hidden),
            rel_embeddings=encoder.get_rel_embedding(),
        )
    return model.lm_predictions(z_states, model.deberta.embeddings.word_embeddings)


def ours(model: DebertaV2ForMaskedLM, table: Tensor, runs: int) -> MaskedLanguageModel:
    """Return our model with its weights and the table injected."""
    mechanism = {
        "name": "disentangled",
        "buckets": {"name": "log", "num_buckets": 8, "max_distance": 40},
    }
    inject = LearnedConfig(max_positions=len(table))
    decoder = MaskDecoderConfig(inject=inject, layers=runs)
    config = shape(norm={"eps": EPS}, mechanism=mechanism)
    positions = {"deberta.embeddings.position_embeddings.weight": table}
    return imported(model, config, decoder, positions)


@torch.no_grad()
@pytest.mark.parametrize("runs", [1, 2, 3])
def test_logits_equal_microsofts_steps_everywhere_and_at_selected_places(
    runs: int, record_property: Record
) -> None:
    model = original()
    table = torch.randn(32, HIDDEN, generator=torch.Generator().manual_seed(5))
    made = ours(model, table, runs)
    gaps = []
    for length in LENGTHS:
        ids, visible, _ = given = sample(length)
        theirs = microsoft(model, table, given, runs)
        gaps.append(difference(made(ids, visible=visible).logits, theirs, visible))
        selected = visible & (ids % 2 == 0)
        if selected.any():
            some = made(ids, visible=visible, selected=selected).logits
            gaps.append(difference(some, theirs[selected]))
    record_property("difference", max(gaps))
    assert max(gaps) <= TOLERANCE
