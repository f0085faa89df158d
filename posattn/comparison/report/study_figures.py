"""The figures of a study: which results each one shows, its words, and its data."""

from posattn.comparison import wording
from posattn.comparison.report.forest_row import forest_row
from posattn.comparison.results_schema import ArmResult, Contrast, Results
from posattn.comparison.statistics import Summary
from posattn.figures.canvas import Real, Style, style_of, tick_label
from posattn.figures.figure import Figure, Row, make_figure
from posattn.figures.forest import Forest, draw_forest
from posattn.figures.lines import LineChart, Point, Series, draw_lines


def study_figures(results: Results) -> dict[str, Figure]:
    """Return the figures that the results allow, by name."""
    styles = arm_styles(results)
    made = [
        _differences(results, styles),
        _curves(results, styles),
        _curves_by_time(results, styles),
        length_figure(results, results.arms, styles, "length"),
        position_figure(results.arms, styles, "position"),
    ]
    return {figure.name: figure for figure in made if figure is not None}


def arm_styles(results: Results) -> dict[str, Style]:
    """Return one style per arm, the same in all figures."""
    others = [arm.name for arm in results.arms if not arm.is_baseline]
    styles = {name: style_of(index, is_baseline=False) for index, name in enumerate(others)}
    return styles | {results.study.baseline: style_of(0, is_baseline=True)}


def _differences(results: Results, styles: dict[str, Style]) -> Figure | None:
    contrasts = results.family("baseline")
    if not any(c.difference.mean is not None for c in contrasts):
        return None
    metric, baseline = results.primary, results.study.baseline
    lower = metric.better == "lower"
    forest = Forest(
        rows=[
            forest_row(metric, c.first, styles[c.first], c.difference, c.judgement)
            for c in contrasts
        ],
        x_label=f"difference from {baseline}, {metric.unit_of_difference}",
        left_word="better" if lower else "worse",
        right_word="worse" if lower else "better",
    )
    caption = (
        f"Paired differences in {metric.label} from {baseline}. Thick: 95 % interval of the arm "
        "alone; thin: the interval after Holm's correction, which decides. Filled marker: told "
        "apart. Arms are in the order of the study, which is no ranking."
    )
    rows: list[Row] = [_difference_row(c) for c in contrasts]
    described = "; ".join(f"{c.first}: {wording.effect(metric, c.difference)}" for c in contrasts)
    columns = (
        *("arm", "n", "mean", "sd", "low_95", "high_95", "corrected_low", "corrected_high"),
        "verdict",
    )
    return make_figure(
        "differences",
        f"Differences from {baseline}",
        caption,
        described,
        lambda width: draw_forest(forest, width),
        columns,
        rows,
    )


def _difference_row(contrast: Contrast) -> Row:
    found, judged = contrast.difference, contrast.judgement
    low = judged.corrected_low if judged else None
    high = judged.corrected_high if judged else None
    verdict = judged.verdict if judged else "not tested"
    shown = (found.n, found.mean, found.sd, found.low, found.high)
    return (contrast.first, *shown, low, high, verdict)


def _curves(results: Results, styles: dict[str, Style]) -> Figure | None:
    series = [mean_curve(arm, styles[arm.name]) for arm in results.arms]
    series += _cut_short(results, styles)
    if not any(s.points for s in series):
        return None
    chart = LineChart(
        series,
        "training tokens",
        "validation loss, nats per masked token",
        x_format=lambda value, _: wording.large(value),
        x_from_zero=True,
    )
    caption = (
        "Learning curves: mean over the finished seeds, band \u00b1 1 sample standard deviation. "
        "Thin lines are runs that did not finish; a cross is where one diverged or failed."
    )
    rows: list[Row] = [
        (arm.name, p.step, p.tokens, p.summary.n, p.summary.mean, p.summary.sd)
        for arm in results.arms
        for p in arm.curve
    ]
    return make_figure(
        "curves",
        "Learning curves",
        caption,
        _ends(series),
        lambda width: draw_lines(chart, width),
        ("arm", "step", "tokens", "n", "mean", "sd"),
        rows,
    )


def mean_curve(
    arm: ArmResult, style: Style, seconds_per_token: float | None = None, name: str = ""
) -> Series:
    """Return an arm's mean loss by tokens, or by seconds where their number per token is given."""
    factor = 1.0 if seconds_per_token is None else seconds_per_token
    points = [_point(p.tokens * factor, p.summary) for p in arm.curve if p.summary.n]
    return Series(name or arm.name, style, points)


def _point(x: Real, summary: Summary) -> Point:
    return Point(x, summary.mean or 0.0, summary.sd)


def _cut_short(results: Results, styles: dict[str, Style]) -> list[Series]:
    return [
        Series(
            run.arm,
            styles[run.arm],
            [Point(p.tokens, p.loss) for p in run.curve if p.loss is not None],
            ended=run.state in ("diverged", "failed"),
            thin=True,
        )
        for run in results.runs
        if run.state != "finished"
    ]


def _curves_by_time(results: Results, styles: dict[str, Style]) -> Figure | None:
    timed: list[tuple[ArmResult, float]] = []
    for arm in results.arms:
        rates = [s.tokens_per_second for s in arm.speed if s.stage == "training_step"]
        if rates and arm.curve:
            timed.append((arm, 1 / rates[0].median))
    if not timed:
        return None
    series = [mean_curve(arm, styles[arm.name], pace) for arm, pace in timed]
    chart = LineChart(
        series,
        "seconds of training",
        "validation loss, nats per masked token",
        x_from_zero=True,
        x_format=tick_label,
    )
    caption = (
        "The same curves against time: tokens times the median seconds per token of the "
        "interleaved timing, so that an arm which costs more per step lies further right."
    )
    rows: list[Row] = [
        (arm.name, p.step, p.tokens * pace, p.summary.n, p.summary.mean, p.summary.sd)
        for arm, pace in timed
        for p in arm.curve
    ]
    return make_figure(
        "curves_by_time",
        "Learning curves against time",
        caption,
        _ends(series),
        lambda width: draw_lines(chart, width),
        ("arm", "step", "seconds", "n", "mean", "sd"),
        rows,
    )


def length_figure(
    results: Results, arms: list[ArmResult], styles: dict[str, Style], name: str
) -> Figure | None:
    """Return the loss of these arms by sequence length, or None where it was not measured."""
    lengths = sorted({p.length for arm in arms for p in arm.length})
    if not lengths:
        return None
    place = {length: float(_log2(length)) for length in lengths}
    train = results.study.train_length
    series = [
        Series(
            arm.name,
            styles[arm.name],
            [_point(place[p.length], p.summary) for p in arm.length if p.summary.n],
            refused=[place[p.length] for p in arm.length if p.refused],
        )
        for arm in arms
    ]
    labels = [(place[n], f"{n} ({n / train:g}\u00d7)" if train else f"{n}") for n in lengths]
    chart = LineChart(
        series,
        "sequence length in evaluation, tokens (log scale)",
        "validation loss, nats per masked token",
        x_ticks=labels,
    )
    refused = [
        f"{arm.name} at {p.length}: {p.refused}" for arm in arms for p in arm.length if p.refused
    ]
    caption = (
        f"Loss beyond the training length{f' of {train} tokens' if train else ''}: mean over "
        "seeds, band \u00b1 1 sample standard deviation, not tested."
    )
    if refused:
        caption += (
            f" A cross above the plot: the arm cannot run this length ({'; '.join(refused)})."
        )
    rows: list[Row] = [
        (arm.name, p.length, p.multiple, p.summary.n, p.summary.mean, p.summary.sd, p.refused)
        for arm in arms
        for p in arm.length
    ]
    return make_figure(
        name,
        "Loss by sequence length",
        caption,
        _ends(series),
        lambda width: draw_lines(chart, width),
        ("arm", "length", "multiple", "n", "mean", "sd", "refused"),
        rows,
    )


def _log2(length: int) -> float:
    from math import log2

    return log2(length)


def position_figure(arms: list[ArmResult], styles: dict[str, Style], name: str) -> Figure | None:
    """Return the loss of these arms by position, or None where it was not measured."""
    if not any(arm.position for arm in arms):
        return None
    series = [
        Series(
            arm.name,
            styles[arm.name],
            [_point((b.start + b.stop - 1) / 2, b.summary) for b in arm.position if b.summary.n],
        )
        for arm in arms
    ]
    chart = LineChart(
        series,
        "position in the sequence (centre of the bin)",
        "validation loss, nats per masked token",
        x_from_zero=True,
    )
    caption = (
        "Loss by position at the training length: mean over seeds, band \u00b1 1 sample standard "
        "deviation, not tested. Ends are harder: they have context on one side only."
    )
    rows: list[Row] = [
        (arm.name, b.start, b.stop, b.summary.n, b.summary.mean, b.summary.sd)
        for arm in arms
        for b in arm.position
    ]
    return make_figure(
        name,
        "Loss by position",
        caption,
        _ends(series),
        lambda width: draw_lines(chart, width),
        ("arm", "start", "stop", "n", "mean", "sd"),
        rows,
    )


def _ends(series: list[Series]) -> str:
    """Return first and last value of every named line, for who cannot see the figure."""
    parts = [
        f"{s.name} from {s.points[0].y:.3f} to {s.points[-1].y:.3f}"
        for s in series
        if s.points and not s.thin
    ]
    return "First and last value by arm: " + "; ".join(parts) + "."
