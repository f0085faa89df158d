import pytest

from posattn.errors import DataError, RecipeError
from posattn.training.config import TrainConfig
from posattn.training.schedule import Schedule, make_schedule, plan_steps


@pytest.mark.parametrize(
    ("batches", "accumulation", "epochs", "steps"), [(5, 2, 2, 6), (1, 4, 3, 3), (4, 2, 1, 2)]
)
def test_step_count_is_known_before_the_run_and_epoch_ends_flush(
    batches: int, accumulation: int, epochs: int, steps: int
) -> None:
    plan = plan_steps(TrainConfig(epochs=epochs, accumulation=accumulation), batches)
    assert plan.steps == steps
    taken = [plan.num_batches(step) for step in range(steps)]
    assert sum(taken) == batches * epochs
    schedule = make_schedule(TrainConfig(epochs=epochs, accumulation=accumulation), steps)
    assert schedule.factor(steps) == 0.0


def test_position_in_the_data_is_a_function_of_the_step() -> None:
    plan = plan_steps(TrainConfig(steps=7, accumulation=2), 5)
    positions = [plan.position(step) for step in range(7)]
    assert positions == [(0, 0), (0, 2), (0, 4), (1, 0), (1, 2), (1, 4), (2, 0)]


def test_no_training_batch_is_an_error_before_training() -> None:
    with pytest.raises(DataError, match="gives no batch"):
        plan_steps(TrainConfig(), 0)


def test_warm_up_begins_at_one_part_of_the_peak_and_reaches_it() -> None:
    schedule = Schedule("linear", 2.0, steps=10, warmup=4)
    assert [schedule.rate(taken) for taken in range(4)] == [0.5, 1.0, 1.5, 2.0]
    assert schedule.rate(4) < 2.0


@pytest.mark.parametrize("kind", ["linear", "cosine"])
@pytest.mark.parametrize("warmup", [0, 1, 4, 10])
@pytest.mark.parametrize("final", [0.0, 0.1])
def test_decay_ends_exactly_at_its_final_value(kind: str, warmup: int, final: float) -> None:
    schedule = Schedule(kind, 1.0, steps=10, warmup=warmup, final_fraction=final)
    factors = [schedule.factor(taken) for taken in range(max(warmup - 1, 0), 11)]
    assert factors[0] == 1.0
    assert factors[-1] == final
    assert factors == sorted(factors, reverse=True)
    assert all(factor > final for factor in factors[:-1]), "no step of the run is without effect"


def test_constant_stays_at_the_peak() -> None:
    schedule = Schedule("constant", 0.3, steps=5, warmup=2)
    assert [schedule.rate(taken) for taken in range(6)] == [0.15, 0.3, 0.3, 0.3, 0.3, 0.3]


def test_warm_up_of_one_is_one_step_and_a_fraction_of_one_is_the_whole_run() -> None:
    assert make_schedule(TrainConfig(warmup_steps=1), 50).warmup == 1
    assert make_schedule(TrainConfig(warmup_fraction=1.0), 50).warmup == 50
    assert make_schedule(TrainConfig(warmup_fraction=1), 50).warmup == 50
    assert make_schedule(TrainConfig(warmup_fraction=1e-1), 50).warmup == 5
    assert make_schedule(TrainConfig(), 50).warmup == 0


def test_warm_up_longer_than_the_epochs_is_refused_with_both_numbers() -> None:
    with pytest.raises(
        RecipeError, match=r"warmup_steps is 9, but train.epochs \(2\) gives only 6"
    ):
        make_schedule(TrainConfig(epochs=2, warmup_steps=9), 6)
