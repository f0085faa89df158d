"""Learned positions: BERT's and RoBERTa's rows, and the end of the table."""

import pytest
import torch
from pydantic import ValidationError

from posattn.errors import IncompatibleParts
from posattn.mechanisms import EncoderDims, LearnedConfig, LearnedPositions
from posattn.positions import counted_positions
from posattn.testing.mechanism_case import MechanismCase

DIMS = EncoderDims(4, 1)


def test_berts_form_adds_the_row_of_each_position() -> None:
    mechanism = LearnedPositions(LearnedConfig(max_positions=10), DIMS)
    hidden = torch.randn(2, 3, 4, generator=torch.Generator().manual_seed(0))
    positions = torch.tensor([[0, 1, 2], [9, 4, 4]])
    found = mechanism.embed(hidden, positions)
    for b in range(2):
        for i in range(3):
            expected = hidden[b, i] + mechanism.table.weight[positions[b, i]]
            assert torch.equal(found[b, i], expected)


def test_robertas_rows_start_after_the_padding_row_which_padding_gets() -> None:
    """Padding id 1 and the ids [1, 1, 5, 6, 7] give the rows [1, 1, 2, 3, 4]."""
    mechanism = LearnedPositions(LearnedConfig(max_positions=10, padding_row=1), DIMS)
    ids = torch.tensor([[1, 1, 5, 6, 7]])
    assert mechanism.rows(counted_positions(ids != 1)).tolist() == [[1, 1, 2, 3, 4]]


def test_robertas_table_of_514_rows_takes_512_tokens() -> None:
    assert LearnedConfig(max_positions=514, padding_row=1).max_length() == 512
    assert LearnedConfig(max_positions=512).max_length() == 512


def test_one_token_too_many_is_an_error_with_both_numbers() -> None:
    model = MechanismCase("learned", {"max_positions": 10}).model()
    model(torch.ones(1, 10, dtype=torch.long))
    with pytest.raises(IncompatibleParts, match=r"11 tokens.*'learned' takes at most 10"):
        model(torch.ones(1, 11, dtype=torch.long))


def test_a_position_past_the_table_is_an_error_not_an_index_fault() -> None:
    mechanism = LearnedPositions(LearnedConfig(max_positions=10, padding_row=1), DIMS)
    hidden = torch.zeros(1, 1, 4)
    mechanism.embed(hidden, torch.tensor([[7]]))
    with pytest.raises(IncompatibleParts, match=r"position 8 is past the end.*0 to 7"):
        mechanism.embed(hidden, torch.tensor([[8]]))


def test_a_table_without_a_usable_row_is_refused() -> None:
    with pytest.raises(ValidationError, match="leaves no row after padding_row 1"):
        LearnedConfig(max_positions=2, padding_row=1)
