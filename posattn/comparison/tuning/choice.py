"""Which trial of each arm is best, and how far the grid reached."""

from collections.abc import Sequence
from typing import Any, Literal

from posattn.comparison.metrics import Metric
from posattn.comparison.results_schema import Results, RunResult
from posattn.comparison.tuning.config import TuningConfig, Values, edge
from posattn.comparison.tuning.schema import ArmTuning, Trial, TrialRun, TuningInfo, values_in_words
from posattn.comparison.tuning.trials import trial_name
from posattn.errors import StudyIncomplete
from posattn.recipe.scalars import plain


def choose(
    arms: Sequence[str], tuning: TuningConfig, metric: Metric, results: Results, plan: str = ""
) -> TuningInfo:
    """Return all trials with the best of each arm by the mean over the tuning seeds.

    A trial of which a run did not finish has failed and is never chosen; of equal trials the first
    is. Raises `StudyIncomplete` if all trials of an arm failed.
    """
    found = [_arm(arm, tuning, metric, results) for arm in arms]
    return TuningInfo(
        grid={path: _plain(values) for path, values in tuning.grid.items()},
        seeds=list(tuning.seeds),
        steps=tuning.steps,
        select_by=metric.name,
        better=metric.better,
        trials_per_arm=len(tuning.points()),
        arms=found,
        seconds=sum(run.seconds or 0.0 for run in results.runs),
        plan=plan,
    )


def expected_best(values: Sequence[float], better: Literal["lower", "higher"]) -> list[float]:
    """Return the expected best of 1, 2, ... N draws with replacement from the N values.

    With the values sorted from the best, E[best of n] = sum_i v_i (((N - i + 1) / N)^n - ((N - i) / N)^n)
    (Dodge et al. 2019, arXiv:1909.03004, equation 6).
    """
    size = len(values)
    ordered = sorted(values, reverse=better == "higher")
    return [
        sum(
            value * (((size - i) / size) ** draws - ((size - i - 1) / size) ** draws)
            for i, value in enumerate(ordered)
        )
        for draws in range(1, size + 1)
    ]


def _arm(arm: str, tuning: TuningConfig, metric: Metric, results: Results) -> ArmTuning:
    runs: dict[str, list[RunResult]] = {}
    for run in results.runs:
        runs.setdefault(run.arm, []).append(run)
    trials = [
        _trial(number, values, runs[trial_name(arm, number)], metric.name)
        for number, values in enumerate(tuning.points(), start=1)
    ]
    best = metric.best([trial.mean for trial in trials])
    if best is None:
        raise StudyIncomplete(_all_failed(arm, trials))
    chosen = trials[best]
    edges = {path: edge(_tuple(tuning.grid[path]), value) for path, value in chosen.values.items()}
    means = [trial.mean for trial in trials if trial.mean is not None]
    return ArmTuning(
        arm=arm,
        trials=trials,
        chosen=chosen.number,
        values=chosen.values,
        edges={path: end for path, end in edges.items() if end is not None},
        expected=expected_best(means, metric.better),
    )


def _trial(number: int, values: Values, runs: Sequence[RunResult], score: str) -> Trial:
    scores = [run.scores[score].value for run in runs]
    known = [value for value in scores if value is not None]
    complete = bool(runs) and len(known) == len(runs)
    return Trial(
        number=number,
        values=dict(values),
        state="finished" if complete else "failed",
        mean=sum(known) / len(known) if complete else None,
        runs=[
            TrialRun(
                seed=run.seed,
                state=run.state,
                score=run.scores[score].value,
                reason=run.reason or run.scores[score].reason,
                seconds=run.seconds,
                tokens=run.tokens,
                folder=f"tuning/{run.folder}",
            )
            for run in runs
        ],
    )


def _all_failed(arm: str, trials: Sequence[Trial]) -> str:
    lines = [
        f"  {values_in_words(trial.values)}, seed {run.seed}: {run.state}"
        + (f": {run.reason}" if run.reason else "")
        for trial in trials
        for run in trial.runs
    ]
    return (
        f"no trial of the arm '{arm}' finished with every tuning seed, so nothing can be chosen for "
        "it:\n"
        + "\n".join(lines)
        + "\nTry other values, in the same grid for all arms; the report "
        "in the folder tuning has the details"
    )


def _plain(values: Sequence[Any]) -> list[Any]:
    return [plain(value) for value in values]


def _tuple(values: Sequence[Any]) -> tuple[Any, ...]:
    return tuple(_plain(values))
