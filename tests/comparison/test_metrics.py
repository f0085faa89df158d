"""Metrics and the best of several values: direction, missing values, unknown names (case S-3)."""

import math

import pytest

from posattn.comparison.metrics import Metric, metrics
from posattn.errors import UnknownName

NAN = math.nan


def metric(name, better):
    return Metric(name, name, "", better, section="validation", key=name)


@pytest.mark.parametrize(
    ("name", "better", "values"),
    [("dev2_loss", "lower", [3.0, 1.0, 2.0]), ("f1", "higher", [0.1, 0.3, 0.2])],
)
def test_the_second_step_is_best_in_either_direction_and_not_a_number_never(name, better, values):
    declared = metric(name, better)
    assert declared.best(values) == 1
    assert declared.best([NAN, *values]) == 2
    assert declared.best([None, *values, math.inf, -math.inf]) == 2


def test_zero_is_a_value_and_the_first_of_equal_ones_is_taken():
    assert metric("loss", "lower").best([0.5, 0.0, 0.0]) == 1
    assert metric("gain", "higher").best([0.0, -1.0]) == 0


def test_of_nothing_nothing_is_best():
    assert metrics.get("validation_loss").best([]) is None
    assert metrics.get("validation_loss").best([NAN, None]) is None


def test_every_registered_metric_declares_its_direction():
    assert {metrics.get(name).better for name in metrics} == {"lower", "higher"}


def test_an_unknown_metric_is_an_error():
    with pytest.raises(UnknownName, match="unknown metric 'f2'"):
        metrics.get("f2")
