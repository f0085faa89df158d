"""No position: nothing is added, hidden or owned."""

import pytest
import torch

from posattn.testing.mechanism_case import MechanismCase


def test_attention_has_neither_bias_nor_rules_nor_parameters() -> None:
    case = MechanismCase("none")
    attention, hidden = case.attention(), case.hidden(2, 5)
    positions = torch.arange(5)[None]
    call = attention.call(hidden, hidden, attention.prepared(positions, positions))
    assert call.bias is None
    assert call.relative_values is None
    assert call.visibility.pairs is None
    assert not list(attention.stack.parameters())
    assert call.scale == pytest.approx(8**-0.5)
