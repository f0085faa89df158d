"""The best value by a metric's direction (case S-3)."""

from posattn.comparison.metrics import metrics

NAN = float("nan")


def test_the_best_follows_the_direction_of_the_metric_and_is_never_nan() -> None:
    loss, accuracy = metrics.get("validation_loss"), metrics.get("validation_accuracy")
    assert loss.best([NAN, 3.0, 1.0, 2.0]) == 2
    assert accuracy.best([NAN, 0.1, 0.3, 0.2]) == 2
    assert loss.best([None, float("inf"), 5.0]) == 2


def test_of_equal_values_the_first_is_best_and_without_any_there_is_none() -> None:
    loss = metrics.get("validation_loss")
    assert loss.best([2.0, 1.0, 1.0]) == 1
    assert loss.best([None, NAN]) is None
