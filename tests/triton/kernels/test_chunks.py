"""Calls are cut into pieces where their scores by distance would take too much memory."""

import pytest
import torch

from posattn.backends import TritonBackend
from posattn.backends.triton_kernels import chunks
from posattn.backends.triton_kernels.chunks import Piece, pieces
from tests.triton.kernels.calls import TILE, assert_as_eager, counted, make


@pytest.fixture
def little_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chunks, "WORKING_MEMORY", 1000)


def test_a_small_call_is_one_piece() -> None:
    assert list(pieces(2, 3, 4, 5, 1)) == [Piece(slice(0, 2), slice(0, 3), slice(0, 4))]


@pytest.mark.usefixtures("little_memory")
@pytest.mark.parametrize("bytes_per_token", [10, 30, 100, 5000])
def test_pieces_cover_all_once_and_lie_in_one_run(bytes_per_token: int) -> None:
    numbers = torch.arange(3 * 4 * 8).view(3, 4, 8)
    found = [numbers[piece] for piece in pieces(3, 4, 8, bytes_per_token, 2)]
    assert all(one.is_contiguous() for one in found)
    assert torch.cat([one.flatten() for one in found]).tolist() == list(range(96))


@pytest.mark.usefixtures("little_memory")
def test_a_call_in_pieces_is_as_eager() -> None:
    at = counted(20).expand(2, -1)
    assert_as_eager(make(at, at, heads=2, parts=("c2p", "p2p")), TritonBackend(TILE))


def test_dropout_does_not_depend_on_the_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    from dataclasses import replace

    call = replace(make(counted(20), counted(20), heads=2, parts=("c2p",)).call, dropout=0.5)
    torch.manual_seed(0)
    whole = TritonBackend(TILE).attend(call)
    monkeypatch.setattr(chunks, "WORKING_MEMORY", 1000)
    torch.manual_seed(0)
    torch.testing.assert_close(TritonBackend(TILE).attend(call), whole)
