import json

import torch

from posattn.training.config import TrainConfig
from posattn.training.lanes import LaneMemory
from posattn.training.step import StepResult
from posattn.training.tally import Tally
from tests.training.tiny_run import TinyBatches, TinyModel

MODEL = TinyModel()


def result(loss: float, targets: int = 10, problem: str | None = None) -> StepResult:
    moved = targets > 0
    return StepResult(
        loss * targets, targets, 20, 0.5 * moved, 0.1, moved, LaneMemory(MODEL), problem
    )


def test_a_line_has_totals_over_the_steps_since_the_last_one() -> None:
    tally = Tally(TrainConfig())
    tally.add(result(2.0, targets=1), [])
    tally.add(result(1.0, targets=9), [])
    line = tally.take_line(0, 0, 1.23456)
    assert line["loss"] == 1.1
    assert (line["step"], line["tokens"], line["targets"], line["seconds"]) == (2, 40, 10, 1.235)
    tally.add(result(4.0, targets=1), [])
    assert tally.take_line(0, 0, 2.0)["loss"] == 4.0


def test_steps_without_targets_give_a_line_with_a_reason() -> None:
    tally = Tally(TrainConfig())
    assert tally.add(result(0.0, targets=0), []) is None
    line = tally.take_line(0, 1, 0.0)
    assert (line["loss"], line["reason"]) == (None, "no target token since the last line")


def test_the_digest_depends_on_batches_and_their_order_and_starts_anew_with_each_line() -> None:
    batches = TinyBatches()
    first, second = (batches.batch(0, samples) for samples in batches.order(0)[:2])

    def digest(*groups: list[object]) -> str:
        tally = Tally(TrainConfig())
        for group in groups:
            tally.add(result(1.0), group)
        return str(tally.take_line(0, 0, 0.0)["batches"])

    assert digest([first, second]) == digest([first], [second])
    assert digest([first, second]) != digest([second, first])
    tally = Tally(TrainConfig())
    tally.add(result(1.0), [first])
    tally.take_line(0, 0, 0.0)
    tally.add(result(1.0), [second])
    assert tally.take_line(0, 0, 0.0)["batches"] == digest([second])


def test_a_mean_loss_far_above_the_first_is_divergence() -> None:
    tally = Tally(TrainConfig(divergence_factor=2.0, divergence_steps=3))
    problems = [tally.add(result(loss), []) for loss in (3.0, 9.0, 5.0, 4.9, 9.0)]
    assert problems[:4] == [None, None, None, "".join(problems[3] or "")]
    assert problems[3] is not None
    assert "the mean loss of the last 3 steps is 6.3" in problems[3]
    assert "times the first loss (3)" in problems[3]


def test_divergence_by_loss_can_be_switched_off() -> None:
    tally = Tally(TrainConfig(divergence_factor=None, divergence_steps=1))
    assert [tally.add(result(loss), []) for loss in (1.0, 1000.0)] == [None, None]


def test_the_state_is_plain_json_and_a_restored_tally_goes_on_alike() -> None:
    batches = TinyBatches()
    batch = batches.batch(0, torch.tensor([1, 2]))
    tally = Tally(TrainConfig())
    for loss in (0.1, 0.7):
        tally.add(result(loss), [batch])
    other = Tally(TrainConfig())
    other.load_state(json.loads(json.dumps(tally.state(), allow_nan=False)))
    for each in (tally, other):
        each.add(result(1 / 3), [batch])
    assert tally.state() == other.state()
    assert tally.take_line(0, 0, 0.0) == other.take_line(0, 0, 0.0)
