"""The figures of a suite: scores by task and arm, averages, profiles, probability of improvement."""

from posattn.comparison.suite.answer import percent
from posattn.comparison.suite.schema import AggregateArm, Interval, SuiteResults, TaskResult
from posattn.figures.canvas import Style, style_of
from posattn.figures.figure import Figure, Row, make_figure
from posattn.figures.forest import Forest, ForestRow, draw_forest
from posattn.figures.lines import LineChart, Point, Series, draw_lines
from posattn.figures.matrix import Matrix, MatrixRow, draw_matrix


def suite_figures(results: SuiteResults) -> dict[str, Figure]:
    """Return the figures that the results allow, by name."""
    styles = suite_styles(results.suite.arms, results.suite.baseline)
    made = [
        _accuracies(results),
        _averages(results, styles),
        _improvements(results, styles),
        _profiles(results, styles),
    ]
    return {figure.name: figure for figure in made if figure is not None}


def suite_styles(arms: list[str], baseline: str) -> dict[str, Style]:
    """Return one style per arm, the same in all figures."""
    others = [name for name in arms if name != baseline]
    styles = {name: style_of(index, is_baseline=False) for index, name in enumerate(others)}
    return styles | {baseline: style_of(0, is_baseline=True)}


def _accuracies(results: SuiteResults) -> Figure | None:
    tasks = [task for task in results.tasks if task.name in results.aggregate.tasks]
    if not tasks:
        return None
    arms = results.suite.arms
    matrix = Matrix(arms, [_row(task, arms) for task in tasks])
    rows: list[Row] = [
        (task.name, arm.name, arm.summary.n, arm.summary.mean, arm.summary.sd)
        for task in tasks
        for arm in task.arms
    ]
    described = "; ".join(
        f"{row.name}: {', '.join(f'{a} {w}' for a, w in zip(arms, row.words, strict=True))}"
        for row in matrix.rows
    )
    return make_figure(
        "accuracies",
        "Accuracy by task and arm",
        "Mean accuracy over the finished seeds, in %; darker is more. A dash: left out of the task, or "
        "no finished run.",
        described,
        lambda width: draw_matrix(matrix, width),
        ("task", "arm", "n", "mean", "sd"),
        rows,
    )


def _row(task: TaskResult, arms: list[str]) -> MatrixRow:
    means = {arm.name: arm.summary.mean for arm in task.arms}
    shares = [means.get(name) for name in arms]
    return MatrixRow(
        task.name, shares, ["\u2013" if share is None else f"{100 * share:.0f}" for share in shares]
    )


def _averages(results: SuiteResults, styles: dict[str, Style]) -> Figure | None:
    found = {arm.name: arm.iqm for arm in results.aggregate.arms if arm.iqm is not None}
    base = found.get(results.suite.baseline)
    if len(found) < 2 or base is None:
        return None
    return _intervals(
        "averages",
        "Interquartile mean over all tasks",
        "Interquartile mean of accuracy over all runs of all tasks; bar: 95 % bootstrap interval, runs "
        f"drawn within each task. The dashed line is the baseline {results.suite.baseline}.",
        found,
        styles,
        Forest([], "interquartile mean of accuracy, %", "less", "more", 100 * base.value),
    )


def _improvements(results: SuiteResults, styles: dict[str, Style]) -> Figure | None:
    found = {a.name: a.improvement for a in results.aggregate.arms if a.improvement is not None}
    if not found:
        return None
    baseline = results.suite.baseline
    return _intervals(
        "improvements",
        f"Probability of improvement over {baseline}",
        f"Chance that a run of the arm is more accurate than one of {baseline} on the same task, "
        "averaged over tasks, ties counted half; bar: 95 % bootstrap interval. 50 % is no difference. "
        "It says how often, not by how much.",
        found,
        styles,
        Forest([], f"probability of improvement over {baseline}, %", "worse", "better", 50.0),
    )


def _intervals(
    name: str,
    title: str,
    caption: str,
    found: dict[str, Interval],
    styles: dict[str, Style],
    empty: Forest,
) -> Figure:
    forest = Forest(
        [
            _forest_row(arm, interval, styles[arm], empty.reference)
            for arm, interval in found.items()
        ],
        empty.x_label,
        empty.left_word,
        empty.right_word,
        empty.reference,
    )
    rows: list[Row] = [(arm, i.value, i.low, i.high) for arm, i in found.items()]
    described = "; ".join(f"{row.name}: {row.words}" for row in forest.rows)
    return make_figure(
        name,
        title,
        caption,
        described,
        lambda width: draw_forest(forest, width),
        ("arm", "value", "low_95", "high_95"),
        rows,
    )


def _forest_row(arm: str, found: Interval, style: Style, reference: float) -> ForestRow:
    value, low, high = (
        None if n is None else 100 * n for n in (found.value, found.low, found.high)
    )
    outside = low is not None and high is not None and (low > reference or high < reference)
    return ForestRow(
        name=arm,
        style=style,
        mean=value,
        low=low,
        high=high,
        corrected_low=None,
        corrected_high=None,
        words=percent(found),
        verdict="outside" if outside else "indistinguishable",
    )


def _profiles(results: SuiteResults, styles: dict[str, Style]) -> Figure | None:
    found = results.aggregate
    arms = [arm for arm in found.arms if arm.profile is not None]
    if not arms:
        return None
    chart = LineChart(
        [Series(arm.name, styles[arm.name], _points(found.thresholds, arm)) for arm in arms],
        "accuracy \u03c4, %",
        "runs with an accuracy of at least \u03c4, %",
    )
    rows: list[Row] = [
        (arm.name, limit, share)
        for arm in arms
        for limit, share in zip(found.thresholds, arm.profile or [], strict=True)
    ]
    described = "; ".join(
        f"{arm.name}: {100 * (arm.profile or [0])[-3]:.0f} % of runs reach "
        f"{100 * found.thresholds[-3]:.0f} %"
        for arm in arms
    )
    return make_figure(
        "profiles",
        "Performance profile",
        "The share of all runs that reach an accuracy, averaged over tasks: a line further up is "
        "better at that accuracy, and lines that cross have no order. Not tested.",
        described,
        lambda width: draw_lines(chart, width),
        ("arm", "accuracy", "share_of_runs"),
        rows,
    )


def _points(thresholds: list[float], arm: AggregateArm) -> list[Point]:
    shares = arm.profile or []
    return [Point(100 * x, 100 * y) for x, y in zip(thresholds, shares, strict=True)]
