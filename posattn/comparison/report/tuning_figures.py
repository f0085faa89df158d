"""The curve of a tuning: the score against each value that was tried, for all arms."""

from math import log10

from posattn.comparison.metrics import Metric, metrics
from posattn.comparison.report.study_figures import arm_styles
from posattn.comparison.results_schema import Results
from posattn.comparison.tuning.schema import ArmTuning, TuningInfo
from posattn.figures.canvas import Real, Style
from posattn.figures.figure import Figure, Row, make_figure
from posattn.figures.lines import LineChart, Point, Series, draw_lines

LOG_FROM = 4.0
"""Positive values whose largest is so many times the smallest are drawn on a logarithmic axis."""


def figure_name(path: str) -> str:
    """Return the name of the figure for one path of the grid."""
    return f"tuning_{path.replace('.', '_')}"


def tuning_figures(results: Results) -> dict[str, Figure]:
    """Return a figure for each path of the grid with two numbers or more."""
    tuning = results.tuning
    if tuning is None:
        return {}
    styles = arm_styles(results)
    made = [_curve(tuning, path, styles) for path in tuning.grid if _is_numeric(tuning.grid[path])]
    return {figure.name: figure for figure in made}


def _is_numeric(values: list[object]) -> bool:
    numbers = [v for v in values if isinstance(v, int | float) and not isinstance(v, bool)]
    return len(values) > 1 and len(numbers) == len(values)


def _curve(tuning: TuningInfo, path: str, styles: dict[str, Style]) -> Figure:
    metric = metrics.get(tuning.select_by)
    values = sorted(tuning.grid[path])
    logarithmic = values[0] > 0 and values[-1] / values[0] >= LOG_FROM
    place = {value: float(log10(value)) if logarithmic else float(value) for value in values}
    series = [_series(arm, path, place, metric, styles[arm.arm]) for arm in tuning.arms]
    unit = f", {metric.unit}" if metric.unit else ""
    chart = LineChart(
        series,
        f"{path}{' (log scale)' if logarithmic else ''}",
        f"{metric.label} of trials{unit}",
        x_ticks=[(place[value], f"{value:g}") for value in values],
        refused_word="diverged or failed",
    )
    return make_figure(
        figure_name(path),
        f"Tuning: {metric.label} by {path}",
        _caption(tuning, path, metric),
        _described(tuning, path),
        lambda width: draw_lines(chart, width),
        (
            "arm",
            "trial",
            path,
            "state",
            "mean",
            "chosen",
            "edge",
            *(f"seed_{seed}" for seed in tuning.seeds),
        ),
        _rows(tuning, path),
    )


def _series(
    arm: ArmTuning, path: str, place: dict[float, float], metric: Metric, style: Style
) -> Series:
    """Return the best mean at each value, over all values of the other paths."""
    points, failed = [], []
    for value, x in place.items():
        trials = [trial for trial in arm.trials if trial.values[path] == value]
        means = [trial.mean for trial in trials]
        best = metric.best(means)
        if best is not None:
            points.append(Point(x, (means[best] or 0.0) * metric.factor))
        if any(trial.state == "failed" for trial in trials):
            failed.append(x)
    mean = arm.trials[arm.chosen - 1].mean or 0.0
    chosen = Point(place[arm.values[path]], mean * metric.factor)
    at_edge = path in arm.edges
    return Series(
        arm.arm,
        style,
        points,
        refused=list[Real](failed),
        ringed=[] if at_edge else [chosen],
        boxed=[chosen] if at_edge else [],
    )


def _caption(tuning: TuningInfo, path: str, metric: Metric) -> str:
    others = [other for other in tuning.grid if other != path]
    over = f", the best over all values of {', '.join(others)}" if others else ""
    return (
        f"Mean {metric.label} of the trials over {len(tuning.seeds)} tuning seeds{over} "
        f"({metric.better} is better). A ring is the chosen value; a box is a chosen value at the "
        "edge of its grid: widen it, the arm counts as not tuned. A cross above the plot: at this "
        "value a trial diverged or failed."
    )


def _described(tuning: TuningInfo, path: str) -> str:
    parts = [
        f"{arm.arm} {arm.values[path]}{' (edge of the grid)' if path in arm.edges else ''}"
        for arm in tuning.arms
    ]
    return f"Chosen by arm: {'; '.join(parts)}."


def _rows(tuning: TuningInfo, path: str) -> list[Row]:
    rows: list[Row] = []
    for arm in tuning.arms:
        for trial in arm.trials:
            is_chosen = trial.number == arm.chosen
            edge = arm.edges.get(path, "") if is_chosen else ""
            scores = {run.seed: run.score for run in trial.runs}
            value, chosen = trial.values[path], "yes" if is_chosen else ""
            row = (arm.arm, trial.number, value, trial.state, trial.mean, chosen, edge)
            rows.append((*row, *(scores.get(seed) for seed in tuning.seeds)))
    return rows
