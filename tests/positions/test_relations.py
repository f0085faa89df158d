"""Relations: an integer for each pair, stated without a tensor of all pairs."""

import pytest
import torch

from posattn.positions import Distances, GivenPairs, OfDistance, Relation

QUERY = torch.tensor([[3, 0, 11], [2, 5, -1]])
KEY = torch.tensor([[0, 2, 9, 30], [1, 1, -1, 4]])


def bucket(values: torch.Tensor) -> torch.Tensor:
    return values.clamp(-4, 4).abs()


def relations() -> dict[str, tuple[Relation, torch.Tensor]]:
    gaps = QUERY[:, :, None] - KEY[:, None, :]
    line = Distances(QUERY, KEY)
    return {
        "distances": (line, gaps),
        "a function of the distance": (line.mapped(bucket), bucket(gaps)),
        "a function of that": (
            line.mapped(bucket).mapped(lambda x: 3 * x - 20),
            3 * bucket(gaps) - 20,
        ),
        "given pairs": (GivenPairs(gaps), gaps),
        "a function of given pairs": (GivenPairs(gaps).mapped(bucket), bucket(gaps)),
        "one row for the batch": (Distances(QUERY[:1], KEY[:1]), gaps[:1]),
    }


@pytest.mark.parametrize("name", relations())
def test_pairs_largest_distinct_and_single_lookups_agree(name: str) -> None:
    relation, expected = relations()[name]
    assert torch.equal(relation.pairs, expected)
    assert relation.pairs is relation.pairs
    assert relation.largest >= int(expected.abs().max())
    values, which = relation.distinct()
    assert torch.equal(values[which.pairs], expected)
    at = relation.at()
    for b in range(2):
        for i in range(3):
            for j in range(4):
                known = expected[b if len(expected) > 1 else 0, i, j]
                assert at(torch.tensor(b), torch.tensor(i), torch.tensor(j)) == known


def test_a_function_of_the_distance_is_taken_once_per_distance_and_not_once_per_pair() -> None:
    positions = torch.arange(50)[None]
    sizes: list[int] = []

    def counted(values: torch.Tensor) -> torch.Tensor:
        sizes.append(values.numel())
        return values

    found = Distances(positions, positions, reach=49).mapped(counted)
    assert isinstance(found, OfDistance)
    assert sizes == [99]
    assert torch.equal(found.pairs[0], positions[0][:, None] - positions[0])


def test_the_largest_distance_is_looked_up_only_if_it_is_not_given() -> None:
    assert Distances(QUERY, KEY).largest == 30
    assert Distances(QUERY, KEY, reach=99).largest == 99
    assert Distances(QUERY[:, :0], KEY).largest == 0
