"""X-10: memory belongs to a stream."""

import pytest
import torch
from torch import Tensor

from posattn.encoder.config import EncoderConfig
from posattn.encoder.decoders import PlainDecoderConfig
from posattn.encoder.init import initialize
from posattn.encoder.memory import SegmentMemory
from posattn.encoder.model import MaskedLanguageModel
from posattn.training.batches import Batch
from posattn.training.evaluate import evaluate
from posattn.training.forward import run_batch
from posattn.training.lanes import LaneMemory
from posattn.training.weights import pack_tensors
from tests.training.tiny_run import TinyModel, make_batch

LENGTH = 6
CPU = torch.device("cpu")


def model_with_memory(memory: int = 4) -> MaskedLanguageModel:
    mechanism = {"name": "transformer_xl", "memory_length": memory}
    config = EncoderConfig.model_validate(
        {"hidden_size": 16, "num_layers": 2, "num_heads": 2, "mechanism": mechanism}
    )
    model = MaskedLanguageModel(config, PlainDecoderConfig(), 20)
    initialize(model, 0)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(torch.randn(parameter.shape, generator=GENERATOR), alpha=0.3)
    return model.eval()


GENERATOR = torch.Generator().manual_seed(1)


def segment(lane: int, number: int) -> Tensor:
    generator = torch.Generator().manual_seed(100 * lane + number)
    return torch.randint(0, 20, (LENGTH,), generator=generator)


def batch_of(lanes: list[int], number: int) -> Batch:
    ids = torch.stack([segment(lane, number) for lane in lanes])
    plain = make_batch(ids, torch.ones_like(ids, dtype=torch.bool))
    return Batch(
        ids=ids,
        targets=plain.targets,
        visible=plain.visible,
        sample_ids=torch.tensor([10 * lane + number for lane in lanes]),
        lanes=torch.tensor(lanes),
    )


def run_all(model: MaskedLanguageModel, batches: list[Batch]) -> dict[int, Tensor]:
    """Return the logits of every sample, in batches that carry memory."""
    memory, found = LaneMemory(model), {}
    with torch.no_grad():
        for batch in batches:
            result = run_batch(model, batch, CPU, "float32", memory.before(batch))
            memory = memory.after(batch, result.memory)
            rows = result.logits.view(len(batch.ids), LENGTH, -1)
            found.update(zip(batch.sample_ids.tolist(), rows, strict=True))
    return found


def test_streams_of_unequal_length_equal_each_stream_alone() -> None:
    model = model_with_memory()
    together = run_all(model, [batch_of([0, 1, 2], 0), batch_of([0, 1], 1), batch_of([0], 2)])
    for lane, segments in ((0, 3), (1, 2), (2, 1)):
        alone = run_all(model, [batch_of([lane], number) for number in range(segments)])
        for sample, logits in alone.items():
            assert (together[sample] - logits).abs().max() < 1e-6


def test_memory_matters_after_the_first_segment_and_not_before() -> None:
    model = model_with_memory()
    carried = run_all(model, [batch_of([0], 0), batch_of([0], 1)])
    fresh = run_all(model, [batch_of([0], 1)])
    assert (carried[1] - fresh[1]).abs().max() > 1e-3
    with torch.no_grad():
        plain = run_batch(model, batch_of([0], 0), CPU, "float32", None).logits
    assert (carried[0] - plain).abs().max() < 1e-6


def test_a_lane_that_was_not_in_the_last_batch_starts_empty() -> None:
    model = model_with_memory()
    mixed = run_all(model, [batch_of([0, 1], 0), batch_of([5, 1], 1)])
    new = run_all(model, [batch_of([5], 1)])
    old = run_all(model, [batch_of([1], 0), batch_of([1], 1)])
    assert (mixed[51] - new[51]).abs().max() < 1e-6
    assert (mixed[11] - old[11]).abs().max() < 1e-6


def test_rows_may_change_their_order() -> None:
    model = model_with_memory()
    straight = run_all(model, [batch_of([0, 1], 0), batch_of([0, 1], 1)])
    swapped = run_all(model, [batch_of([0, 1], 0), batch_of([1, 0], 1)])
    for sample, logits in straight.items():
        assert (swapped[sample] - logits).abs().max() < 1e-6


def test_memory_goes_through_a_checkpoint_bit_for_bit() -> None:
    model = model_with_memory()
    first, second = batch_of([3, 4], 0), batch_of([3, 4], 1)
    with torch.no_grad():
        result = run_batch(model, first, CPU, "float32", LaneMemory(model).before(first))
    memory = LaneMemory(model).after(first, result.memory)
    tensors = memory.tensors()
    assert pack_tensors(tensors)
    again = LaneMemory(model).restored(tensors, CPU)
    one, other = memory.before(second), again.before(second)
    assert isinstance(one, SegmentMemory)
    assert isinstance(other, SegmentMemory)
    assert all(torch.equal(a, b) for a, b in zip(one.states, other.states, strict=True))
    assert torch.equal(one.visible, other.visible)
    assert torch.equal(one.positions, other.positions)


def test_there_is_nothing_to_carry_without_memory_or_without_lanes() -> None:
    tiny = LaneMemory(TinyModel())
    assert tiny.before(batch_of([0], 0)) is None
    assert tiny.after(batch_of([0], 0), None) is tiny
    assert tiny.tensors() == {}
    ids = segment(0, 0)[None, :]
    shuffled = make_batch(ids, torch.ones_like(ids, dtype=torch.bool))
    assert LaneMemory(model_with_memory()).before(shuffled) is None


def test_evaluation_carries_memory_too() -> None:
    model = model_with_memory()
    together = evaluate(model, [batch_of([0, 1], 0), batch_of([0, 1], 1)])
    alone = [evaluate(model, [batch_of([lane], 0), batch_of([lane], 1)]) for lane in (0, 1)]
    expected = [value for part in alone for value in part.loss_sum]
    assert together.loss_sum.tolist() == pytest.approx(expected, abs=1e-4)
    empty = evaluate(model, [batch_of([0], 1)])
    assert abs(empty.loss_sum[0] - together.loss_sum[1]) > 1e-3
