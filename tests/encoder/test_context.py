import torch

from posattn.encoder.context import counted_positions, document_positions

from .small_models import ids, model

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


def test_a_batch_without_padding_has_one_row_of_positions_and_no_visibility() -> None:
    encoder = model("rope").encoder
    context = encoder.begin(ids(2, 4), visible=torch.ones(2, 4, dtype=torch.bool))
    assert context.tokens.visible is None
    assert context.tokens.positions.tolist() == [[0, 1, 2, 3]]
    assert context.prepared.visibility.pairs is None


def test_mechanisms_prepare_once_per_forward_and_not_once_per_layer() -> None:
    made = model("rope", num_layers=3)
    rope = made.encoder.position.mechanisms["rope"]
    calls = []
    original = rope.prepare

    def counted(geometry: object) -> object:
        calls.append(geometry)
        return original(geometry)

    rope.prepare = counted
    made(ids(2, 5))
    assert len(calls) == 1
    selected = torch.zeros(2, 5, dtype=torch.bool)
    selected[:, 2] = True
    made(ids(2, 5), selected=selected)
    assert len(calls) == 3  # once for all tokens, once for the queries of the last layer
