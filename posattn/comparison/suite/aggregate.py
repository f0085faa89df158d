"""Scores of one kind over all tasks: interquartile mean, probability of improvement, profiles.

After Agarwal et al. 2021 (arXiv:2108.13264). Intervals come from a bootstrap over the runs of each
task: tasks are held, so they say nothing about tasks that are not in the suite.
"""

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from posattn.comparison import wording
from posattn.comparison.results_schema import MetricInfo
from posattn.comparison.statistics import (
    interquartile_mean,
    performance_profile,
    probability_of_improvement,
    stratified_bootstrap,
)
from posattn.comparison.suite.schema import Aggregate, AggregateArm, Interval, TaskArm, TaskResult

RESAMPLES = 1000
THRESHOLDS = [round(0.02 * step, 2) for step in range(51)]

Scores = dict[str, dict[int, float]]
"""By task and seed."""


def is_share(metric: MetricInfo) -> bool:
    """Return whether a score is a share from 0 to 1 of which more is better: an accuracy."""
    return metric.better == "higher" and metric.unit.startswith("%")


def aggregate_tasks(tasks: Sequence[TaskResult], baseline: str) -> Aggregate:
    """Return what the accuracies of all tasks say together; refuse to average other scores.

    Losses of different data have no common scale, and scores of different kinds no common unit.
    """
    begun = [task for task in tasks if task.metric is not None]
    chosen = [task for task in begun if task.metric and is_share(task.metric)]
    left_out = {
        task.name: f"its score is {task.metric.label}, {task.metric.unit}, which is no accuracy"
        for task in begun
        if task.metric and task not in chosen
    }
    left_out |= {task.name: "not started" for task in tasks if task.metric is None}
    if len(chosen) < 2:
        kinds = sorted({task.metric.label for task in begun if task.metric})
        reason = (
            f"nothing is averaged: {len(chosen)} of {wording.plural(len(tasks), 'task')} "
            f"{'has' if len(chosen) == 1 else 'have'} an accuracy as score, and an average needs two "
            f"(scores: {wording.listed(kinds) or 'none'}). Losses of different data, or scores of "
            "different kinds, have no common scale"
        )
        return _nothing(left_out, reason)
    names = list(dict.fromkeys(arm.name for task in chosen for arm in task.arms))
    scores = {name: _scores(name, chosen) for name in names}
    return Aggregate(
        kind="accuracy",
        tasks=[task.name for task in chosen],
        left_out=left_out,
        resamples=RESAMPLES,
        thresholds=THRESHOLDS,
        arms=[_arm(name, chosen, scores, baseline) for name in names],
    )


def _nothing(left_out: Mapping[str, str], reason: str) -> Aggregate:
    return Aggregate(
        kind="none",
        tasks=[],
        left_out=dict(left_out),
        resamples=0,
        thresholds=[],
        arms=[],
        reason=reason,
    )


def _scores(name: str, tasks: Sequence[TaskResult]) -> Scores:
    found = {}
    for task in tasks:
        arm = _arm_of(task, name)
        values = arm.values if arm else {}
        found[task.name] = {seed: value for seed, value in values.items() if value is not None}
    return found


def _arm_of(task: TaskResult, name: str) -> TaskArm | None:
    return next((arm for arm in task.arms if arm.name == name), None)


def _arm(
    name: str, tasks: Sequence[TaskResult], scores: Mapping[str, Scores], baseline: str
) -> AggregateArm:
    mine = scores[name]
    planned = sum(len(arm.values) for task in tasks if (arm := _arm_of(task, name)))
    runs = sum(map(len, mine.values()))
    missing = [task for task, values in mine.items() if not values]
    if missing:
        reason = f"no finished run in {wording.listed(missing)}: an average over fewer tasks would "
        reason += "not compare"
        return AggregateArm(
            name=name,
            runs=runs,
            unfinished=planned - runs,
            iqm=None,
            improvement=None,
            profile=None,
            reason=reason,
        )
    runs_by_task = [list(values.values()) for values in mine.values()]
    profile = performance_profile(runs_by_task, np.array(THRESHOLDS) - 1e-9)
    return AggregateArm(
        name=name,
        runs=runs,
        unfinished=planned - runs,
        iqm=_interval(interquartile_mean, runs_by_task),
        improvement=None if name == baseline else _improvement(mine, scores.get(baseline, {})),
        profile=[float(share) for share in profile],
    )


def _improvement(mine: Scores, other: Scores) -> Interval | None:
    """Return the probability that a run is better than one of the baseline, over the same tasks."""
    if not all(other.get(task) for task in mine):
        return None
    first = [list(values.values()) for values in mine.values()]
    second = [list(other[task].values()) for task in mine]
    return _interval(probability_of_improvement, first, second)


def _interval(statistic: Callable[..., float], *groups: list[list[float]]) -> Interval:
    value = statistic(*groups)
    if all(len(runs) < 2 for group in groups for runs in group):
        return Interval(value=value, low=None, high=None)
    low, high = stratified_bootstrap(statistic, *groups, resamples=RESAMPLES)
    return Interval(value=value, low=low, high=high)
