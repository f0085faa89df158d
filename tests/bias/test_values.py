"""What position adds to the attended values."""

import torch

from posattn.bias import RelativeValues
from posattn.positions import GivenPairs


def test_each_query_gets_its_buckets_rows_weighted_by_probability() -> None:
    generator = torch.Generator().manual_seed(0)
    probs = torch.rand(2, 3, 4, 5, generator=generator, dtype=torch.float64)
    table = torch.randn(6, 7, generator=generator, dtype=torch.float64)
    for batches in (1, 2):
        bucket = torch.randint(0, 6, (batches, 4, 5), generator=generator)
        found = RelativeValues(table, (GivenPairs(bucket),)).attended(probs)
        for b in range(2):
            for h in range(3):
                for i in range(4):
                    rows = bucket[b if batches > 1 else 0, i]
                    expected = sum(
                        (probs[b, h, i, j] * table[rows[j]] for j in range(5)), torch.zeros(7)
                    )
                    torch.testing.assert_close(found[b, h, i], expected.double())
