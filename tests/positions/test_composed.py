"""Two relations in one, and pairs that stand apart: as a whole and one pair at a time."""

import pytest
import torch

from posattn.positions import Apart, Distances, Joint, Relation

ROWS, COLUMNS = torch.tensor([[0, 0, 1, 2]]), torch.tensor([[0, 3, 1, 2]])
INSIDE = torch.tensor([[False, True, True, True], [True, True, False, True]])


def offset(values: torch.Tensor, reach: int) -> Relation:
    return Distances(values, values, reach).mapped(lambda value: value + reach)


def joint() -> Joint:
    return Joint(offset(ROWS, 2), offset(COLUMNS, 3), width=7)


def apart() -> Apart:
    return Apart(joint(), INSIDE, INSIDE, (40, 41, 42))


def by_hand(b: int, i: int, j: int, relation: Relation) -> int:
    down, right = int(ROWS[0, i] - ROWS[0, j]), int(COLUMNS[0, i] - COLUMNS[0, j])
    inside = (down + 2) * 7 + right + 3
    if isinstance(relation, Joint):
        return inside
    table = {(True, True): inside, (False, True): 40, (True, False): 41, (False, False): 42}
    return table[bool(INSIDE[b, i]), bool(INSIDE[b, j])]


@pytest.mark.parametrize("relation", [joint(), apart()], ids=["joint", "apart"])
def test_pairs_distinct_functions_and_single_lookups_agree(relation: Relation) -> None:
    batch = relation.pairs.shape[0]
    expected = torch.tensor(
        [[[by_hand(b, i, j, relation) for j in range(4)] for i in range(4)] for b in range(batch)]
    )
    assert torch.equal(relation.pairs, expected)
    assert relation.pairs is relation.pairs
    assert relation.largest == int(expected.max())
    values, which = relation.distinct()
    assert torch.equal(values[which.pairs], expected)
    assert torch.equal(relation.mapped(lambda value: value % 5).pairs, expected % 5)
    b, i, j = torch.meshgrid(torch.arange(batch), torch.arange(4), torch.arange(4), indexing="ij")
    assert torch.equal(relation.at()(b, i, j), expected)
