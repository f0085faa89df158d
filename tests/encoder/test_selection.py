import torch

from posattn.encoder.selection import selection


def test_selected_places_come_sequence_by_sequence_from_left_to_right() -> None:
    selected = torch.tensor([[False, True, False, True], [True, False, False, False]])
    chosen = selection(selected)
    assert chosen.index.tolist() == [[1, 3], [0, 0]]
    assert chosen.valid.tolist() == [[True, True], [True, False]]
    hidden = torch.arange(8.0).reshape(2, 4, 1)
    taken = chosen.take(hidden)
    assert chosen.flatten(taken).flatten().tolist() == [1.0, 3.0, 4.0]
    assert chosen.flatten(taken).tolist() == hidden[selected].tolist()


def test_the_order_holds_in_long_rows_too() -> None:
    selected = torch.rand(3, 500, generator=torch.Generator().manual_seed(0)) < 0.5
    chosen = selection(selected)
    for row in range(3):
        expected = selected[row].nonzero().flatten().tolist()
        assert chosen.index[row][chosen.valid[row]].tolist() == expected


def test_an_empty_row_contributes_nothing() -> None:
    selected = torch.tensor([[False, False, False], [False, True, True]])
    chosen = selection(selected)
    assert chosen.valid.tolist() == [[False, False], [True, True]]
    hidden = torch.randn(2, 3, 5)
    assert torch.equal(chosen.flatten(chosen.take(hidden)), hidden[selected])


def test_without_any_selected_place_one_invalid_column_remains() -> None:
    chosen = selection(torch.zeros(2, 3, dtype=torch.bool))
    assert chosen.index.tolist() == [[0], [0]]
    assert not chosen.valid.any()
    assert chosen.flatten(chosen.take(torch.randn(2, 3, 5))).shape == (0, 5)


def test_everything_selected_is_the_identity() -> None:
    hidden = torch.randn(2, 4, 3)
    chosen = selection(torch.ones(2, 4, dtype=torch.bool))
    assert torch.equal(chosen.take(hidden), hidden)


def test_positions_of_one_row_serve_all_sequences() -> None:
    selected = torch.tensor([[False, True, True], [True, False, True]])
    positions = torch.tensor([[10, 11, 12]])
    assert selection(selected).take_positions(positions).tolist() == [[11, 12], [10, 12]]
