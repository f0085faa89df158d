import math
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from posattn.errors import DataError
from posattn.training.batches import Batch
from posattn.training.evaluate import evaluate, evaluating
from tests.training.tiny_run import TinyModel, make_batch


class LossByToken(nn.Module):
    """A model whose loss is 2.0 on target id 2 and 1.0 on target id 3, whatever the batch."""

    def forward(self, ids: Tensor, *, selected: Tensor, **unused: Any) -> SimpleNamespace:
        logits = torch.zeros(int(selected.sum()), 4, dtype=torch.float64)
        rest = 1 - math.exp(-2.0) - math.exp(-1.0)
        for token, chance in ((0, rest / 2), (1, rest / 2), (2, math.exp(-2)), (3, math.exp(-1))):
            logits[:, token] = math.log(chance)
        return SimpleNamespace(logits=logits, memory=None)


def documents() -> Batch:
    """Document 0 has 1 target of loss 2.0, document 1 has 9 of loss 1.0, document 2 has none."""
    ids = torch.tensor([2, 3, 3])[:, None].expand(3, 9).contiguous()
    selected = torch.arange(9)[None, :] < torch.tensor([1, 9, 0])[:, None]
    return make_batch(ids, selected)


def cut(batch: Batch, size: int) -> list[Batch]:
    rows = torch.arange(len(batch.ids)).split(size)
    ids = torch.where(batch.selected, batch.targets, batch.ids)
    return [make_batch(ids[row], batch.selected[row], row) for row in rows]


@pytest.mark.parametrize("size", [1, 2, 3])
def test_loss_is_total_over_total_whatever_the_batch_size(size: int) -> None:
    found = evaluate(LossByToken(), cut(documents(), size))
    assert found.loss == pytest.approx(1.1, abs=1e-14)
    assert found.perplexity == pytest.approx(math.exp(1.1))
    assert found.targets == 10
    assert found.sample_ids.tolist() == [0, 1, 2]
    assert found.loss_sum.tolist() == pytest.approx([2.0, 9.0, 0.0])
    assert found.sample_targets.tolist() == [1, 9, 0]
    assert found.correct.tolist() == [0, 9, 0]
    assert found.accuracy == pytest.approx(0.9)


def test_samples_are_in_order_and_sums_by_position_add_up() -> None:
    found = evaluate(LossByToken(), list(reversed(cut(documents(), 1))))
    assert found.sample_ids.tolist() == [0, 1, 2]
    assert found.position_loss_sum.tolist() == pytest.approx([3.0, *[1.0] * 8])
    assert found.position_targets.tolist() == [2, *[1] * 8]
    assert found.position_loss_sum.sum() == pytest.approx(found.loss_sum.sum())


def test_batches_of_different_length_share_the_positions() -> None:
    short = make_batch(torch.full((1, 4), 3), torch.ones(1, 4, dtype=torch.bool))
    found = evaluate(LossByToken(), [short, documents()])
    assert found.position_targets.tolist() == [3, 2, 2, 2, 1, 1, 1, 1, 1]
    assert found.tokens == 4 + 27


def test_evaluation_has_no_dropout_no_gradient_and_leaves_the_mode_as_it_was() -> None:
    torch.manual_seed(0)
    model = TinyModel(dropout=0.5)
    model.train()
    model.norm.eval()
    batch = make_batch(torch.full((2, 8), 4), torch.ones(2, 8, dtype=torch.bool))
    first, second = (evaluate(model, [batch]) for _ in range(2))
    assert np.array_equal(first.loss_sum, second.loss_sum)
    plain = TinyModel(dropout=0.0)
    plain.load_state_dict(model.state_dict())
    assert evaluate(plain, [batch]).loss == first.loss
    assert model.training
    assert model.dropout.training
    assert not model.norm.training
    assert all(parameter.grad is None for parameter in model.parameters())


def test_the_mode_is_restored_after_an_error() -> None:
    model = TinyModel()
    with pytest.raises(AttributeError), evaluating(model):
        model.no_such_thing()
    assert model.training


def test_nothing_to_evaluate_is_an_error_with_the_counts() -> None:
    empty = make_batch(torch.full((2, 8), 4), torch.zeros(2, 8, dtype=torch.bool))
    with pytest.raises(DataError, match="1 batches with 16 tokens hold no target token"):
        evaluate(TinyModel(), [empty])
    with pytest.raises(DataError, match="0 batches"):
        evaluate(TinyModel(), [])


def test_bf16_evaluation_is_close_to_float32() -> None:
    torch.manual_seed(0)
    model = TinyModel()
    batch = make_batch(torch.full((2, 8), 4), torch.ones(2, 8, dtype=torch.bool))
    exact, rough = (evaluate(model, [batch], "cpu", p).loss for p in ("float32", "bf16"))
    assert exact != rough
    assert exact == pytest.approx(rough, rel=0.05)
