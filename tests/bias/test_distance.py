"""A bias that is a function of head and distance."""

import torch

from posattn.bias import DistanceBias
from posattn.positions import GivenPairs
from posattn.testing.statement_checks import by_score_mod


def test_every_entry_is_the_function_of_its_distance_and_head() -> None:
    distance = torch.tensor([[[0, -3], [7, 2]], [[1, 1], [-9, 0]]])
    bias = DistanceBias("d", GivenPairs(distance), 3, lambda apart, head: apart * 10.0 + head)
    found = bias.materialize()
    for b in range(2):
        for h in range(3):
            for i in range(2):
                for j in range(2):
                    assert found[b, h, i, j] == int(distance[b, i, j]) * 10 + h
    assert torch.equal(by_score_mod(bias, (2, 3, 2, 2)), found)


def test_one_row_of_distances_serves_the_batch() -> None:
    bias = DistanceBias(
        "d", GivenPairs(torch.tensor([[[0, 5]]])), 2, lambda apart, head: apart * (head + 1.0)
    )
    assert bias.materialize().shape == (1, 2, 1, 2)
    assert by_score_mod(bias, (3, 2, 1, 2))[2].tolist() == [[[0.0, 5.0]], [[0.0, 10.0]]]


def test_only_a_shared_bias_keeps_the_whole_of_it() -> None:
    distance = torch.tensor([[[0, 5]]])
    alone, shared = (
        DistanceBias(
            "d", GivenPairs(distance), 2, lambda apart, head: apart * (head + 1.0), shared=kept
        )
        for kept in (False, True)
    )
    assert shared.materialize() is shared.materialize()
    assert alone.materialize() is not alone.materialize()
    assert torch.equal(alone.materialize(), shared.materialize())
