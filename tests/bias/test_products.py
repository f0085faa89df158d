"""Products of tokens with a table are the scores that they stand for, in every form."""

import pytest
import torch

from posattn.bias import KeyProducts, KeyScores, QueryProducts, QueryScores, SumBias
from posattn.positions import Distances, clipped

PLACES = torch.arange(4)[None]
BUCKET = Distances(PLACES, PLACES).mapped(lambda distance: clipped(distance, 1) + 1)
ROWS, TABLE = torch.randn(2, 3, 4, 5), torch.randn(3, 3, 5)


@pytest.mark.parametrize(
    ("products", "scores"), [(QueryProducts, QueryScores), (KeyProducts, KeyScores)]
)
def test_they_are_the_scores_of_rows_and_table(
    products: type[QueryProducts] | type[KeyProducts], scores: type[QueryScores] | type[KeyScores]
) -> None:
    given = products("term", ROWS, TABLE, BUCKET)
    expected = scores("term", ROWS @ TABLE.mT, BUCKET)
    assert torch.equal(given.materialize(), expected.materialize())
    assert torch.equal(given.terms()["term"], expected.materialize())
    (part,) = given.parts()
    assert type(part) is scores
    place = [torch.tensor(index) for index in (1, 2, 3, 0)]
    logit = given.score_mod()(torch.tensor(0.0), *place)
    torch.testing.assert_close(logit, expected.materialize()[1, 2, 3, 0])


def test_a_sum_leaves_them_to_a_backend_that_multiplies() -> None:
    by_query, by_key = (
        QueryProducts("q", ROWS, TABLE, BUCKET),
        KeyProducts("k", ROWS, TABLE, BUCKET),
    )
    assert SumBias((by_query, by_key)).factored() == (by_query, by_key)
