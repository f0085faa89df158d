"""Projections side by side give what they give one by one, and never from an old weight."""

import pytest
import torch
from torch import nn

from posattn.encoder.projections import StackedProjections


@torch.no_grad()
@pytest.mark.parametrize("biases", [(True, True, True), (True, False, True), (False,) * 3])
def test_one_product_gives_what_three_give(biases: tuple[bool, ...]) -> None:
    projections = [nn.Linear(4, 4, bias=bias) for bias in biases]
    stacked, hidden = StackedProjections(), torch.randn(2, 3, 4)
    assert stacked.takes(projections)
    for change in (0.0, 1.0):
        projections[1].weight += change
        expected = torch.cat([each(hidden) for each in projections], dim=-1)
        torch.testing.assert_close(stacked(projections, hidden), expected)


def test_it_keeps_out_of_training_and_of_projections_that_do_more_than_their_weights() -> None:
    class Adapted(nn.Linear):
        pass

    plain = [nn.Linear(4, 4) for _ in range(3)]
    assert not StackedProjections().takes(plain)
    with torch.no_grad():
        assert not StackedProjections().takes([*plain[:2], Adapted(4, 4)])
