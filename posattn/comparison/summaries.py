"""What the runs of one arm say together: curves, losses by length and position, sizes, speed."""

from collections.abc import Iterable, Sequence
from statistics import median

import numpy as np

from posattn.comparison.results_schema import (
    ArmCurvePoint,
    LengthPoint,
    PositionBin,
    Quartiles,
    Sizes,
    SpeedSummary,
)
from posattn.comparison.statistics import summarize
from posattn.comparison.study_files import Evaluations, RunFiles, Speed, SpeedRound

MAIN_STAGES = ("training_step", "inference")


def curve(runs: Sequence[RunFiles]) -> list[ArmCurvePoint]:
    """Return the mean validation loss by step over these runs."""
    tokens: dict[int, int] = {}
    losses: dict[int, list[float]] = {}
    for run in runs:
        for point in run.curve:
            tokens.setdefault(point.step, point.tokens)
            if point.loss is not None:
                losses.setdefault(point.step, []).append(point.loss)
    return [
        ArmCurvePoint(step=step, tokens=tokens[step], summary=summarize(losses[step]))
        for step in sorted(losses)
    ]


def by_length(evaluations: Sequence[Evaluations], train_length: int | None) -> list[LengthPoint]:
    """Return the loss by sequence length, with the lengths that the arm refused and why."""
    losses: dict[int, list[float]] = {}
    refused: dict[int, str] = {}
    for stored in (e.length for e in evaluations if e.length is not None):
        refused |= stored.refused
        for length, loss in zip(stored.lengths, stored.loss, strict=False):
            found = losses.setdefault(length, [])
            if loss is not None:
                found.append(loss)
    return [
        LengthPoint(
            length=length,
            multiple=length / train_length if train_length else None,
            summary=summarize(losses.get(length, [])),
            refused=refused.get(length),
        )
        for length in sorted(losses.keys() | refused.keys())
    ]


def by_position(evaluations: Sequence[Evaluations]) -> list[PositionBin]:
    """Return the loss by position in the sequence, one bin after the other."""
    losses: dict[tuple[int, int], list[float]] = {}
    for stored in (e.position for e in evaluations if e.position is not None):
        bins = zip(stored.edges[:-1], stored.edges[1:], stored.loss, strict=False)
        for start, stop, loss in bins:
            found = losses.setdefault((start, stop), [])
            if loss is not None:
                found.append(loss)
    return [
        PositionBin(start=start, stop=stop, summary=summarize(losses[start, stop]))
        for start, stop in sorted(losses)
    ]


def sizes(evaluations: Sequence[Evaluations]) -> Sizes:
    """Return the sizes of the arm's model, the same for every seed."""
    found = [e.size for e in evaluations if e.size is not None]
    if not found:
        return Sizes(reason="no finished run has its size evaluated")
    return Sizes(**found[0].model_dump())


def speed(arm: str, baseline: str, stored: Speed | None) -> list[SpeedSummary]:
    """Return the timings of one arm, and their ratio to the baseline within the same rounds."""
    rounds = stored.rounds if stored else []
    found = {item.stage for item in rounds if item.arm == arm}
    order = [stage for stage in MAIN_STAGES if stage in found]
    stages = order + sorted(found - set(order))
    return [_stage_speed(arm, baseline, stage, rounds) for stage in stages]


def _stage_speed(arm: str, baseline: str, stage: str, rounds: Sequence[SpeedRound]) -> SpeedSummary:
    mine = [item for item in rounds if item.arm == arm and item.stage == stage]
    theirs = [item for item in rounds if item.arm == baseline and item.stage == stage]
    my_times, their_times = _seconds_per_token(mine), _seconds_per_token(theirs)
    ratios = [my_times[r] / their_times[r] for r in sorted(my_times.keys() & their_times.keys())]
    return SpeedSummary(
        stage=stage,
        seconds=_quartiles(item.seconds for item in mine),
        tokens_per_second=_quartiles(item.tokens / item.seconds for item in mine),
        ratio=_quartiles(ratios) if ratios else None,
    )


def _seconds_per_token(items: Iterable[SpeedRound]) -> dict[int, float]:
    by_round: dict[int, list[float]] = {}
    for item in items:
        by_round.setdefault(item.round, []).append(item.seconds / item.tokens)
    return {number: median(values) for number, values in by_round.items()}


def _quartiles(values: Iterable[float]) -> Quartiles:
    array = np.fromiter(values, dtype=np.float64)
    lower, middle, upper = (float(q) for q in np.percentile(array, [25, 50, 75]))
    return Quartiles(n=len(array), median=middle, lower=lower, upper=upper)
