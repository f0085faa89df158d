"""The figures of a factorial study: its effects with intervals, and the means of its combinations."""

from posattn.comparison import wording
from posattn.comparison.factorial.parts import DesignPart, EffectPart
from posattn.comparison.report.forest_row import forest_row
from posattn.comparison.results_schema import Results
from posattn.figures.canvas import style_of
from posattn.figures.figure import Figure, Row, make_figure
from posattn.figures.forest import Forest, draw_forest
from posattn.figures.lines import LineChart, Point, Series, draw_lines

MOST_LINES = 8


def effect_figures(results: Results) -> dict[str, Figure]:
    """Return the figures that the results allow, by name; none for a study without factors."""
    if results.design is None:
        return {}
    made = [_forest(results), _cells(results, results.design)]
    return {figure.name: figure for figure in made if figure is not None}


def _forest(results: Results) -> Figure | None:
    if not any(effect.difference.mean is not None for effect in results.effects):
        return None
    metric = results.primary
    forest = Forest(
        rows=[
            forest_row(
                metric, e.name, style_of(number, is_baseline=False), e.difference, e.judgement
            )
            for number, e in enumerate(results.effects)
        ],
        x_label=f"effect on {metric.label}, {metric.unit_of_difference}",
        left_word="lower",
        right_word="higher",
    )
    caption = (
        f"Effects on {metric.label}, paired over seeds ({metric.better} is better). Thick: 95 % interval "
        "of the effect alone; thin: the interval after Holm's correction, which decides. Filled marker: "
        "told from zero. Effects are in the order of the study, which is no ranking."
    )
    described = "; ".join(
        f"{e.name}: {wording.effect(metric, e.difference)}" for e in results.effects
    )
    columns = (
        *("effect", "kind", "n", "missing", "mean", "sd", "low_95", "high_95", "bootstrap_low"),
        *("bootstrap_high", "corrected_low", "corrected_high", "verdict"),
    )
    rows = [_forest_data(effect) for effect in results.effects]
    return make_figure(
        "effects",
        "Effects of the factors",
        caption,
        described,
        lambda width: draw_forest(forest, width),
        columns,
        rows,
    )


def _forest_data(effect: EffectPart) -> Row:
    found, judged, boot = effect.difference, effect.judgement, effect.bootstrap
    return (
        *(effect.name, effect.kind, found.n, len(effect.missing), found.mean, found.sd),
        *(found.low, found.high, boot.low if boot else None, boot.high if boot else None),
        *(judged.corrected_low, judged.corrected_high, judged.verdict),
    )


def _cells(results: Results, design: DesignPart) -> Figure | None:
    """Return the means of all combinations as lines over one factor: parallel without interaction."""
    across = _factor_across(design)
    lines = _lines(design, across)
    if not lines or len(lines) > MOST_LINES:
        return None
    metric, levels = results.primary, design.factors[across]
    series = []
    for number, (name, arms) in enumerate(lines.items()):
        points = []
        for place, level in enumerate(levels):
            summary = (
                results.arm(arms[level]).scores[metric.name].summary if level in arms else None
            )
            if summary is not None and summary.mean is not None:
                sd = None if summary.sd is None else summary.sd * metric.factor
                points.append(Point(place, summary.mean * metric.factor, sd))
        series.append(Series(name, style_of(number, is_baseline=False), points))
    if not any(line.points for line in series):
        return None
    chart = LineChart(
        series,
        f"level of {across}",
        f"{metric.label}, {metric.unit}",
        x_ticks=[(float(place), level) for place, level in enumerate(levels)],
    )
    caption = (
        f"Mean {metric.label} of every combination over its finished seeds, band \u00b1 1 sample standard "
        f"deviation between seeds, which pairing takes out of the effects. Lines that are not parallel are "
        f"an interaction with {across}."
    )
    rows: list[Row] = [
        (arm, name, level, s.n, s.mean, s.sd)
        for name, arms in lines.items()
        for level, arm in arms.items()
        for s in (results.arm(arm).scores[metric.name].summary,)
    ]
    described = "; ".join(
        f"{line.name}: {', '.join(wording.number(p.y, metric.digits) for p in line.points)}"
        for line in series
    )
    return make_figure(
        "cells",
        "All combinations",
        caption,
        f"Mean by level of {across} ({', '.join(levels)}): {described}.",
        lambda width: draw_lines(chart, width),
        ("arm", "others", across, "n", "mean", "sd"),
        rows,
    )


def _factor_across(design: DesignPart) -> str:
    """Return the factor over which most combinations join to lines; of several the last."""

    def whole(name: str) -> int:
        levels = len(design.factors[name])
        return sum(len(arms) for arms in _lines(design, name).values() if len(arms) == levels)

    return max(reversed(list(design.factors)), key=whole)


def _lines(design: DesignPart, across: str) -> dict[str, dict[str, str]]:
    """Return, by the levels of the other factors, the arm of each level; lines of two or more."""
    found: dict[str, dict[str, str]] = {}
    for arm, cell in design.cells.items():
        others = ", ".join(f"{name} {level}" for name, level in cell.items() if name != across)
        found.setdefault(others or "all", {})[cell[across]] = arm
    return {name: arms for name, arms in found.items() if len(arms) > 1}
