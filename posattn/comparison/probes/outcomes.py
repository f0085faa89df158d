"""What became of the predictions: held, broken or mixed over the seeds, and how many runs solved it."""

from collections.abc import Iterable

from posattn.comparison.probes.base import accuracy_at
from posattn.comparison.results_schema import (
    AccuracyAtLength,
    PredictionOutcome,
    ProbeInfo,
    RunResult,
    SolvedShare,
)
from posattn.comparison.statistics import fraction_interval
from posattn.comparison.study_files import PlannedPrediction, RunFiles, StudyFiles


def probe_outcome(
    files: StudyFiles, runs: Iterable[RunResult], length: int | None
) -> ProbeInfo | None:
    """Return what the study's probe asks, with the share of solved runs of each arm.

    `length` is that of rows in training.
    """
    planned = files.plan.probe
    if planned is None:
        return None
    scores: dict[str, list[float]] = {arm.name: [] for arm in files.plan.arms}
    started = dict.fromkeys(scores, 0)
    for run in runs:
        started[run.arm] += 1
        value = run.scores[planned.score].value
        if value is not None:
            scores[run.arm].append(value)
    arms = []
    for arm, values in scores.items():
        solved = sum(value >= planned.solved for value in values)
        low, high = fraction_interval(solved, len(values))
        arms.append(
            SolvedShare(
                arm=arm, solved=solved, n=len(values), runs=started[arm], low=low, high=high
            )
        )
    return ProbeInfo(
        name=planned.name,
        question=planned.question,
        chance=planned.chance,
        solved=planned.solved,
        score=planned.score,
        arms=arms,
        lengths=_by_length(files, length),
    )


def _by_length(files: StudyFiles, trained: int | None) -> list[AccuracyAtLength]:
    """Return the accuracies at every length that a run was evaluated at, arm after arm."""
    found: dict[tuple[str, int], dict[int, float | None]] = {}
    for run in files.runs:
        lengths = run.evaluations.length if run.evaluations else None
        if lengths is None or lengths.accuracy is None or not trained:
            continue
        for length, accuracy in zip(lengths.lengths, lengths.accuracy, strict=True):
            found.setdefault((run.arm, length), {})[run.seed] = accuracy
    return [
        AccuracyAtLength(arm=arm, length=length, multiple=length // (trained or 1), values=values)
        for (arm, length), values in found.items()
    ]


def prediction_outcomes(
    files: StudyFiles, runs: Iterable[RunResult], length: int | None
) -> list[PredictionOutcome]:
    """Return every prediction with the scores of the finished runs; those that broke stand too."""
    results = list(runs)
    return [
        _outcome(arm.name, prediction, files, results, length)
        for arm in files.plan.arms
        for prediction in arm.predictions
    ]


def _outcome(
    arm: str,
    prediction: PlannedPrediction,
    files: StudyFiles,
    results: list[RunResult],
    length: int | None,
) -> PredictionOutcome:
    stored = {(run.arm, run.seed): run for run in files.runs}
    values = {
        run.seed: _value(run, stored[run.arm, run.seed], prediction.score, length)
        for run in results
        if run.arm == arm
    }
    known = [value for value in values.values() if value is not None]
    low = -float("inf") if prediction.at_least is None else prediction.at_least
    high = float("inf") if prediction.at_most is None else prediction.at_most
    held = sum(low <= value <= high for value in known)
    verdict = "mixed"
    if held in (0, len(known)):
        verdict = "held" if held else "broken" if known else "not tested"
    return PredictionOutcome(
        arm=arm,
        **prediction.model_dump(),
        values=values,
        in_range=held,
        n=len(known),
        verdict=verdict,
    )


def _value(run: RunResult, stored: RunFiles, score: str, length: int | None) -> float | None:
    """Return a score of one run: one of the study's metrics, or an accuracy at some length."""
    if score in run.scores:
        return run.scores[score].value
    lengths = stored.evaluations.length if stored.evaluations else None
    if run.state != "finished" or lengths is None or lengths.accuracy is None or not length:
        return None
    for at, accuracy in zip(lengths.lengths, lengths.accuracy, strict=True):
        if accuracy_at(at // length) == score and at % length == 0:
            return accuracy
    return None
