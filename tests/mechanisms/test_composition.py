"""Several mechanisms in one encoder: each does what it does alone."""

from typing import Any

import pytest
import torch
from pydantic import ValidationError

from posattn.encoder.config import EncoderConfig
from posattn.encoder.decoder import PlainDecoderConfig
from posattn.encoder.model import MaskedLanguageModel
from posattn.testing.mechanism_case import MechanismCase, full_logits, randomize

IDS = torch.tensor([[3, 1, 4, 1, 5], [9, 2, 6, 5, 3]])


def model_of(*mechanisms: Any, **changes: Any) -> MaskedLanguageModel:
    config = MechanismCase("none").encoder_config(mechanism=list(mechanisms), **changes)
    model = MaskedLanguageModel(config, PlainDecoderConfig(), 23)
    randomize(model, 0)
    return model.double().eval()


def test_terms_of_two_biases_stand_side_by_side_with_the_values_they_have_alone() -> None:
    """Tokens get the same first layer; only the sum of logits is new."""
    both = model_of("alibi", "transformer_xl").score_terms(IDS)[0]
    alone = {
        **model_of("alibi").score_terms(IDS)[0],
        **model_of("transformer_xl").score_terms(IDS)[0],
    }
    assert set(both) == {"a", "distance", "b", "c", "d"}
    for name in ("distance", "b", "c", "d"):
        torch.testing.assert_close(both[name], alone[name])


def test_rotation_turns_content_and_leaves_bias_terms_alone() -> None:
    both = model_of("rope", "disentangled").score_terms(IDS)[0]
    alone = model_of("disentangled").score_terms(IDS)[0]
    for name in ("c2c", "c2p", "p2c"):
        torch.testing.assert_close(both[name], alone[name])
    assert "rotation" not in alone
    assert both["rotation"].abs().max() > 0.1


def test_input_rotary_and_bias_mechanisms_run_on_all_backends_alike() -> None:
    visible = torch.tensor([[True] * 5, [True] * 3 + [False] * 2])
    parts = ("sinusoidal", "rope", {"name": "alibi", "variant": "offset"})
    eager, sdpa = (model_of(*parts, backend=name) for name in ("eager", "sdpa"))
    expected = eager(IDS, visible=visible).hidden[visible]
    torch.testing.assert_close(sdpa(IDS, visible=visible).hidden[visible], expected)


def test_a_mechanism_acts_in_its_layers_only() -> None:
    model = model_of({"name": "alibi", "layers": [1]}, num_layers=3)
    assert ["distance" in terms for terms in model.score_terms(IDS)] == [False, True, False]


def test_one_mechanism_may_appear_twice_with_other_options() -> None:
    """ModernBERT's form: one base in some layers and another in the rest."""
    first = {"name": "rope", "base": 160000.0, "layers": {"every": 3}}
    others = {"name": "rope", "base": 10000.0, "layers": [1, 2]}
    model = model_of(first, others, num_layers=3)
    swapped = model_of({**first, "base": 10000.0}, {**others, "base": 160000.0}, num_layers=3)
    assert not torch.allclose(model(IDS).hidden, swapped(IDS).hidden)


def test_two_scales_in_one_layer_are_refused() -> None:
    parts = ["disentangled", {"name": "disentangled", "p2c": False}]
    with pytest.raises(ValidationError, match="different scales in layer 0"):
        EncoderConfig(mechanism=parts)


def test_the_scale_of_disentangled_attention_holds_only_where_it_acts() -> None:
    config = EncoderConfig(num_layers=2, mechanism={"name": "disentangled", "layers": [1]})
    assert config.divisor(0) == pytest.approx(32**0.5)
    assert config.divisor(1) == pytest.approx(96**0.5)


def test_full_logits_are_content_and_every_bias() -> None:
    case = MechanismCase("alibi")
    attention, hidden, positions = case.attention(), case.hidden(2, 4), torch.arange(4)[None]
    call = attention.call(hidden, hidden, attention.prepared(positions, positions))
    assert call.bias is not None
    expected = call.scale * call.query @ call.key.mT + call.bias.materialize()
    torch.testing.assert_close(full_logits(call), expected)
