from collections.abc import Sequence

import numpy as np
import pytest

from posattn.errors import DataError
from posattn.training.text.division import Census, divide, route, take_census
from posattn.training.text.pieces import Piece, pieces_of


def pieces(texts: Sequence[str]) -> list[Piece]:
    return [piece for text in texts for piece in pieces_of([(text, 0)], 0)]


def parts(texts: Sequence[str], fraction: float, seed: int = 0) -> tuple[list[str], list[str]]:
    """Return the documents of training and of validation."""
    census = take_census(pieces(texts))
    found: dict[str, list[str]] = {"train": [""], "validation": [""]}
    for part, piece in route(pieces(texts), census, divide(census, fraction, seed)):
        found[part][-1] += piece.text
        if piece.ends:
            found[part].append("")
    assert found["train"].pop() == found["validation"].pop() == ""
    return [t for t in found["train"] if t], [t for t in found["validation"] if t]


def test_documents_are_held_out_whole_if_there_are_enough() -> None:
    texts = [f"document {i} " + "word " * (i % 7) for i in range(100)]
    train, validation = parts(texts, 0.1)
    assert sorted(train + validation) == sorted(texts)
    assert 0.05 < sum(map(len, validation)) / sum(map(len, texts)) < 0.15
    assert parts(texts, 0.1) == (train, validation)
    assert parts(texts, 0.1, seed=1) != (train, validation)


def test_which_documents_are_held_out_does_not_depend_on_empty_ones_being_kept() -> None:
    train, validation = parts(["full " * 9, "  \n", ""] * 20, 0.2)
    assert all(text.strip() for text in train + validation)


@pytest.mark.parametrize("texts", [["one two three four " * 50], ["x y " * 500, "a", "b"]])
@pytest.mark.parametrize("fraction", [0.05, 0.3])
def test_few_documents_are_divided_by_the_tail_of_the_text(
    texts: list[str], fraction: float
) -> None:
    train, validation = parts(texts, fraction)
    assert "".join(train) + "".join(validation) == "".join(texts)
    total = sum(map(len, texts))
    assert abs(sum(map(len, validation)) - fraction * total) < 10
    assert validation[0][0].isspace()


def test_a_tail_that_starts_in_a_long_document_is_cut_once() -> None:
    text = "some words here " * 50_000
    train, validation = parts([text], 0.4)
    assert len(train) == len(validation) == 1
    assert train[0] + validation[0] == text
    assert abs(len(validation[0]) / len(text) - 0.4) < 0.001


def test_a_tail_of_whole_documents_cuts_none() -> None:
    texts = ["a" * 100, "b" * 100]
    train, validation = parts(texts, 0.5)
    assert sorted(train + validation) == sorted(texts)
    assert len(train) == len(validation) == 1


def test_no_text_at_all_is_an_error_with_the_count() -> None:
    census = take_census(pieces(["", " \n", "\t"]))
    with pytest.raises(DataError, match=r"every document that was read is empty \(documents: 3\)"):
        divide(census, 0.1, 0)
    with pytest.raises(DataError, match="documents: 0"):
        divide(take_census([]), 0.1, 0)


def test_the_census_counts_by_file() -> None:
    given = [
        Piece("ab", 0, False, 1),
        Piece("c", 0, True),
        Piece(" ", 1, True, 2),
        Piece("de", 1, True),
    ]
    census = take_census(given)
    assert (census.documents(), census.empty_documents(), census.replaced) == (2, 1, 3)
    assert (census.documents(1), census.empty_documents(1)) == (1, 1)
    assert census.characters.tolist() == [3, 0, 2]


def test_characters_are_counted_over_all_pieces() -> None:
    text = "word " * 100_000
    assert take_census(pieces([text])).characters.tolist() == [len(text)]
    assert isinstance(take_census([]), Census)
    assert take_census([]).characters.dtype == np.int64
