from typing import Any

import numpy as np
import pytest

from posattn.training.text.samples import Layout, PackedSamples, PaddedSamples
from posattn.training.text.vocabulary import Vocabulary

PAD, UNK, CLS, SEP, MASK = range(5)
SPECIAL = np.arange(5)
VOCABULARY = Vocabulary(100, PAD, UNK, CLS, SEP, MASK, SPECIAL, np.arange(5, 100))
DOCUMENTS = [[10, 11, 12], [20], [30, 31, 32, 33, 34], [40, 41]]
STREAM = [token for document in DOCUMENTS for token in [*document, SEP]]
OFFSETS = np.cumsum([0] + [len(document) + 1 for document in DOCUMENTS])


def layout(**changes: Any) -> Layout:
    given = {
        "kind": "packed",
        "max_length": 4,
        "cls": False,
        "across_documents": True,
        "order": "shuffled",
        "padding_side": "right",
    }
    return Layout(**(given | changes))


def packed(length: int, limit: int | None = None, **changes: Any) -> PackedSamples:
    tokens = np.array(STREAM, np.uint16)
    return PackedSamples(tokens, OFFSETS, layout(**changes), VOCABULARY, length, limit)


def padded(length: int, limit: int | None = None, **changes: Any) -> PaddedSamples:
    tokens = np.array(STREAM, np.uint16)
    given = layout(kind="padded", **changes)
    return PaddedSamples(tokens, OFFSETS, given, VOCABULARY, length, limit)


def test_packed_blocks_are_the_stream_in_order() -> None:
    samples = packed(4)
    assert len(samples) == 3
    assert samples.leftover_tokens == len(STREAM) - 12 == 3
    rows = samples.rows(np.arange(3))
    assert rows.ids.ravel().tolist() == STREAM[:12]
    assert rows.origins.tolist() == [0, 4, 8]
    assert rows.visible.all()
    assert rows.documents is None


def test_packed_blocks_may_start_with_cls() -> None:
    samples = packed(4, cls=True)
    assert len(samples) == 5
    assert samples.leftover_tokens == 0
    rows = samples.rows(np.array([1, 4]))
    assert rows.ids.tolist() == [[CLS, SEP, 20, SEP], [CLS, 40, 41, SEP]]
    assert rows.origins.tolist() == [2, 11]


@pytest.mark.parametrize("cls", [False, True])
@pytest.mark.parametrize("length", [4, 5, 8, 12])
def test_a_token_has_the_same_place_at_every_length(cls: bool, length: int) -> None:
    samples = packed(length, cls=cls)
    rows = samples.rows(np.arange(len(samples)))
    for ids, origin in zip(rows.ids, rows.origins, strict=True):
        for column, token in enumerate(ids.tolist()):
            if token != CLS:
                assert token == STREAM[origin + column]


def test_documents_of_a_block_are_numbered_from_zero_and_own_their_separator() -> None:
    samples = packed(7, across_documents=False)
    rows = samples.rows(np.array([0, 1]))
    assert rows.ids[0].tolist() == [10, 11, 12, SEP, 20, SEP, 30]
    assert rows.documents is not None
    assert rows.documents.tolist() == [[0, 0, 0, 0, 1, 1, 2], [0, 0, 0, 0, 0, 1, 1]]


def test_cls_belongs_to_the_first_document_of_its_block() -> None:
    rows = packed(5, across_documents=False, cls=True).rows(np.array([1]))
    assert rows.ids.tolist() == [[CLS, 20, SEP, 30, 31]]
    assert rows.documents is not None
    assert rows.documents.tolist() == [[0, 0, 0, 1, 1]]


def test_a_limit_uses_the_start_of_the_stream() -> None:
    samples = packed(4, limit=10)
    assert (len(samples), samples.leftover_tokens, samples.used) == (2, 2, 10)
    assert packed(4, limit=10**9).used == len(STREAM)


def test_padded_rows_are_documents_and_long_ones_are_cut() -> None:
    samples = padded(4)
    assert len(samples) == 5
    rows = samples.rows(np.arange(5))
    assert rows.ids.tolist() == [
        [10, 11, 12, PAD],
        [20, PAD, PAD, PAD],
        [30, 31, 32, 33],
        [34, PAD, PAD, PAD],
        [40, 41, PAD, PAD],
    ]
    assert np.array_equal(rows.visible, rows.ids != PAD)
    assert samples.leftover_tokens == 0


def test_padded_rows_may_be_framed() -> None:
    samples = padded(5, cls=True)
    rows = samples.rows(np.array([3, 2, 4]))
    assert rows.ids.tolist() == [
        [CLS, 33, 34, SEP, PAD],
        [CLS, 30, 31, 32, SEP],
        [CLS, 40, 41, SEP, PAD],
    ]
    assert np.array_equal(rows.visible, rows.ids != PAD)
    for row in range(3):
        place = rows.origins[row] + 1
        assert rows.ids[row, 1] == STREAM[place]


def test_rows_are_padded_to_the_longest_of_them_only() -> None:
    assert padded(64).rows(np.array([1, 3])).ids.tolist() == [[20, PAD], [40, 41]]


@pytest.mark.parametrize("cls", [False, True])
def test_a_document_that_just_fits_is_one_row(cls: bool) -> None:
    samples = padded(5 + 2 * cls, cls=cls)
    assert len(samples) == 4
    assert samples.rows(np.array([2])).visible.all()


def test_a_limit_takes_the_documents_that_start_in_it() -> None:
    samples = padded(4, limit=7)
    assert len(samples) == 4
    assert samples.used == 12
