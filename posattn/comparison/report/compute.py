"""The time that a study took in all, failed and killed runs too."""

import math
from collections.abc import Sequence

from posattn.comparison import wording
from posattn.comparison.results_schema import Results, RunResult
from posattn.comparison.tuning.schema import TrialRun
from posattn.figures.blocks import Table, numbers, words


def compute_table(results: Results) -> Table:
    """Return the seconds of all runs, by arm and by whether they finished, and their sum."""
    rows = [
        _row(arm.name, [run for run in results.runs if run.arm == arm.name]) for arm in results.arms
    ]
    if results.tuning is not None:
        trials = [run for arm in results.tuning.arms for trial in arm.trials for run in trial.runs]
        rows.append(_row("tuning trials", trials))
        rows.append(_row("all runs and trials", [*results.runs, *trials]))
    else:
        rows.append(_row("all runs", results.runs))
    started = [run for run in results.runs if run.state != "not started"]
    unknown = sum(run.seconds is None for run in started)
    note = (
        "Seconds of training as the runs counted them, over all their tries; evaluation, timing and "
        "the preparation of the text come on top."
    )
    if unknown:
        note += f" {wording.plural(unknown, 'run')} left no time and counts as 0."
    titles = ("runs started", "finished", "seconds, finished", "seconds, others", "seconds, all")
    return Table(
        "Computing time of everything, failed and killed runs too",
        [*words("arm"), *numbers(*titles)],
        rows,
        note,
        name="compute",
    )


def _row(name: str, runs: Sequence[RunResult | TrialRun]) -> list[str]:
    done = [run for run in runs if run.state == "finished"]
    finished, every = _seconds(done), _seconds(runs)
    started = sum(run.state != "not started" for run in runs)
    shown = [wording.number(value, 0) for value in (finished, every - finished, every)]
    return [name, str(started), str(len(done)), *shown]


def _seconds(runs: Sequence[RunResult | TrialRun]) -> float:
    return math.fsum(run.seconds or 0.0 for run in runs)
