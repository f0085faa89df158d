import pytest

from posattn.training.text.pieces import LONGEST, PIECE, cut_before_space, pieces_of


def test_a_cut_is_where_whitespace_follows_other_text() -> None:
    assert cut_before_space("one two") == 3
    assert cut_before_space("one two  \n") == 7
    assert cut_before_space("   ") == 0
    assert cut_before_space("word") == 0


@pytest.mark.parametrize("block", [1000, PIECE, 10**7])
def test_pieces_join_to_the_document_and_stay_small(block: int) -> None:
    text = ("some words of text\n" * 40 + " " * 50 + "x" * 900 + "\n") * 400
    blocks = [(text[at : at + block], 1) for at in range(0, len(text), block)]
    pieces = list(pieces_of(blocks, 3))
    assert "".join(piece.text for piece in pieces) == text
    assert [piece.ends for piece in pieces] == [False] * (len(pieces) - 1) + [True]
    assert max(len(piece.text) for piece in pieces) <= PIECE + block
    assert sum(piece.replaced for piece in pieces) == len(blocks)
    assert all(piece.text[0].isspace() for piece in pieces[1:])


def test_text_without_whitespace_is_cut_at_the_longest() -> None:
    pieces = list(pieces_of([("x" * (3 * LONGEST), 0)], 0))
    assert max(len(piece.text) for piece in pieces) == LONGEST
    assert sum(len(piece.text) for piece in pieces) == 3 * LONGEST


def test_an_empty_document_is_one_empty_piece() -> None:
    assert [piece.text for piece in pieces_of([], 0)] == [""]
