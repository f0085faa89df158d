"""Sums of biases."""

import torch

from posattn.bias import DenseBias, SumBias, total_bias
from posattn.testing.statement_checks import by_score_mod

ONE = DenseBias("one", torch.ones(1, 2, 3, 4))
KEYS = DenseBias("keys", torch.arange(8.0).view(2, 1, 1, 4))


def test_a_sum_adds_its_parts_and_keeps_their_names() -> None:
    both = SumBias((ONE, KEYS))
    expected = (ONE.value + KEYS.value).expand(2, 2, 3, 4)
    assert torch.equal(both.materialize(), expected)
    assert torch.equal(by_score_mod(both, (2, 2, 3, 4)), expected)
    assert list(both.terms()) == ["one", "keys"]


def test_terms_of_one_name_are_added() -> None:
    terms = SumBias((ONE, KEYS, ONE)).terms()
    assert list(terms) == ["one", "keys"]
    assert torch.equal(terms["one"], 2 * ONE.value)


def test_absent_biases_are_left_out() -> None:
    assert total_bias([None, None]) is None
    assert total_bias([]) is None
    assert total_bias([None, ONE]) is ONE
    total = total_bias([ONE, None, KEYS])
    assert total is not None
    assert torch.equal(total.materialize(), ONE.value + KEYS.value)
