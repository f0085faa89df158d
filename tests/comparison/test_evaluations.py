"""Evaluations on their own: bins of positions, lengths that cannot be run, and the registry."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from posattn.comparison.evaluations import RunEvaluation, StudyEvaluation, evaluations
from posattn.comparison.evaluations.length import LengthConfig, LengthEvaluation
from posattn.comparison.evaluations.position import (
    PositionConfig,
    PositionEvaluation,
    bin_edges,
)
from posattn.comparison.evaluations.subject import Subject
from posattn.comparison.evaluations.validation import ValidationConfig, ValidationEvaluation
from posattn.errors import DataError, IncompatibleParts
from posattn.training.evaluate import Evaluation as Scores


def scores(loss_by_position: list[float], targets_by_position: list[int]) -> Scores:
    targets = sum(targets_by_position)
    return Scores(
        loss=sum(loss_by_position) / targets,
        accuracy=0.5,
        targets=targets,
        tokens=8 * targets,
        sample_ids=np.array([0, 1]),
        loss_sum=np.array([sum(loss_by_position), 0.0]),
        sample_targets=np.array([targets, 0]),
        correct=np.array([targets // 2, 0]),
        position_loss_sum=np.array(loss_by_position),
        position_targets=np.array(targets_by_position),
    )


class FakeSubject(Subject):
    """A model of training length 8 with given scores; length 32 is beyond it, text ends at 64."""

    length = 8

    def __init__(
        self, found: Scores | None = None, limit: int | None = None, folder: Path | None = None
    ) -> None:
        self.found = found
        self.limit = limit
        self.folder = folder or Path()

    def max_length(self) -> int | None:
        return self.limit

    def scores(self, length: int, tokens: int | None) -> Scores:
        if length > 32:
            raise DataError(f"fewer than one row of {length}")
        if length == 32:
            raise IncompatibleParts("this mechanism cannot")
        return self.found or scores([float(length)], [4])


def lengths(limit: int | None, multiples: tuple[int, ...]) -> dict[str, Any]:
    subject = FakeSubject(limit=limit)
    return LengthEvaluation(LengthConfig(multiples=multiples)).evaluate(subject)


def test_the_registry_has_the_five_evaluations_and_each_is_of_one_kind() -> None:
    names = ["length", "position", "size", "speed", "validation"]
    assert [name for name in evaluations if name in names] == names
    for name in names:
        kind = evaluations.get(name)
        assert issubclass(kind, RunEvaluation) != issubclass(kind, StudyEvaluation)


@pytest.mark.parametrize(
    ("length", "bins", "edges"),
    [
        (64, 8, [0, 8, 16, 24, 32, 40, 48, 56, 64]),
        (10, 4, [0, 2, 5, 8, 10]),
        (3, 8, [0, 1, 2, 3]),
        (5, 1, [0, 5]),
    ],
)
def test_bins_cover_every_position_once(length: int, bins: int, edges: list[int]) -> None:
    assert bin_edges(length, bins) == edges


def test_loss_by_position_is_total_loss_over_total_targets_of_each_bin() -> None:
    found = scores([1.0, 3.0, 0.0, 0.0, 2.0, 2.0], [1, 3, 0, 0, 1, 0])
    subject = FakeSubject(found)
    result = PositionEvaluation(PositionConfig(bins=4)).evaluate(subject)
    assert result["edges"] == [0, 2, 4, 6, 8]
    assert result["loss"] == [1.0, None, 4.0, None]
    assert result["targets"] == [4, 0, 1, 0]


def test_lengths_that_the_model_cannot_take_are_null_with_the_limit() -> None:
    result = lengths(16, (1, 2, 4))
    assert result["lengths"] == [8, 16, 32]
    assert result["loss"] == [2.0, 4.0, None]
    assert result["targets"] == [4, 4, None]
    assert result["refused"] == {"32": "the model takes at most 16 tokens"}


def test_a_mechanism_that_raises_and_a_text_that_is_too_short_are_null_with_the_reason() -> None:
    result = lengths(None, (1, 4, 8))
    assert result["loss"] == [2.0, None, None]
    assert result["refused"] == {
        "32": "this mechanism cannot",
        "64": "fewer than one row of 64",
    }


def test_the_sums_of_every_sample_are_saved(tmp_path: Path) -> None:
    found = scores([1.0, 3.0], [1, 3])
    subject = FakeSubject(found, folder=tmp_path)
    result = ValidationEvaluation(ValidationConfig()).evaluate(subject)
    assert result["loss"] == 1.0
    with np.load(tmp_path / "examples.npz", allow_pickle=False) as stored:
        assert sorted(stored.files) == ["correct", "loss_sum", "sample_ids", "targets"]
        assert stored["loss_sum"].tolist() == [4.0, 0.0]
        assert stored["loss_sum"].dtype == np.float64
        assert stored["sample_ids"].dtype == np.int64
