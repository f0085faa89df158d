"""A bias that is a tensor, and its size-1 axes."""

import pytest
import torch

from posattn.bias import DenseBias
from posattn.testing.statement_checks import by_score_mod


@pytest.mark.parametrize(
    "shape", [(2, 3, 4, 5), (1, 3, 4, 5), (2, 1, 1, 5), (1, 1, 4, 1), (1, 1, 1, 1)]
)
def test_single_logits_broadcast_as_the_whole_does(shape: tuple[int, int, int, int]) -> None:
    value = torch.randn(shape, generator=torch.Generator().manual_seed(0))
    bias = DenseBias("b", value)
    assert torch.equal(by_score_mod(bias, (2, 3, 4, 5)), value.expand(2, 3, 4, 5))
    assert bias.materialize() is value
    assert dict(bias.terms()) == {"b": value}
