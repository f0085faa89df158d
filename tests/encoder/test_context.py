import torch

from .small_models import ids, model


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
