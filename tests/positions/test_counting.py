"""Positions counted over visible tokens, anew in each document."""

import torch

from posattn.positions import counted_positions, document_positions

YES, NO = True, False


def test_positions_count_visible_tokens_wherever_the_padding_is() -> None:
    visible = torch.tensor([[NO, NO, YES, YES], [YES, YES, NO, NO], [YES, NO, NO, YES], [NO] * 4])
    expected = [[-1, -1, 0, 1], [0, 1, -1, -1], [0, -1, -1, 1], [-1] * 4]
    assert counted_positions(visible).tolist() == expected


def test_positions_start_anew_in_every_document() -> None:
    documents = torch.tensor([[0, 0, 1, 1, 1, 2], [5, 5, 5, 5, 5, 5], [1, 2, 1, 1, 2, 2]])
    expected = [[0, 1, 0, 1, 2, 0], [0, 1, 2, 3, 4, 5], [0, 0, 0, 1, 0, 1]]
    assert document_positions(documents, None).tolist() == expected


def test_padding_within_a_block_of_documents_does_not_count() -> None:
    documents = torch.tensor([[0, 0, 0, 1, 1, 1]])
    visible = torch.tensor([[NO, YES, YES, NO, YES, NO]])
    assert document_positions(documents, visible).tolist() == [[-1, 0, 1, -1, 0, -1]]
