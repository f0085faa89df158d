"""Relative logits against their formula, and what lies beyond the extent."""

import pytest
import torch

from posattn.mechanisms import EncoderDims, RelativeLogitsConfig
from posattn.testing.mechanism_case import MechanismCase

from .oracle import KEY_POSITIONS, QUERY_POSITIONS, assert_terms, dot, head_of, linear


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("extent", [4, 13, 2000])
def test_the_bias_is_the_formula_written_as_loops(causal: bool, extent: int) -> None:
    options = {"rank": 3, "extent": extent, "causal": causal}
    case = MechanismCase("relative_logits", options, 8, 2)
    attention, query = case.attention(), case.hidden(2, len(QUERY_POSITIONS))
    places = torch.tensor([QUERY_POSITIONS]), torch.tensor([KEY_POSITIONS])
    hidden = case.hidden(2, len(KEY_POSITIONS))
    call = attention.call(query, hidden, attention.prepared(*places))
    layer = attention.attention.position.parts["relative_logits"]
    profiles = layer.profiles.weight.tolist()
    assert len(profiles) == (extent if causal else 2 * extent - 1)

    def value(mixture: list[float], distance: int) -> float:
        if abs(distance) >= extent or (causal and distance < 0):
            return 0.0
        return dot(mixture, profiles[distance if causal else distance + extent - 1])

    expected = []
    for rows in query.tolist():
        mixtures = linear(rows, layer.mixture_proj)
        expected.append(
            [
                [
                    [value(head_of(mixture, h, 2), at - key) for key in KEY_POSITIONS]
                    for mixture, at in zip(mixtures, QUERY_POSITIONS, strict=True)
                ]
                for h in range(2)
            ]
        )
    assert_terms(call, {"relative": expected})
    assert (call.visibility.pairs is None) == (not causal)


def test_only_the_profiles_that_a_length_can_reach_are_scored() -> None:
    case = MechanismCase("relative_logits")
    attention, places = case.attention(), torch.arange(5)[None]
    call = attention.call(case.hidden(1, 5), case.hidden(1, 5), attention.prepared(places, places))
    assert call.bias.table.shape[1] == 9
    assert RelativeLogitsConfig(extent=3).rows(4) == 7
    assert RelativeLogitsConfig(extent=3, causal=True).rows(4) == 5


def test_the_card_tells_the_extent() -> None:
    card = RelativeLogitsConfig(extent=8).card(EncoderDims(8, 2))
    assert card["positions"] == "distances -7 to 7, no bias beyond"
    causal = RelativeLogitsConfig(extent=8, causal=True).card(EncoderDims(8, 2))
    assert causal["positions"] == "distances 0 to 7, no bias beyond"
