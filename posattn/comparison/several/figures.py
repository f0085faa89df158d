"""The figure of several studies: each arm's difference from the baseline of its own study."""

from dataclasses import replace

from posattn.comparison.report.forest_row import forest_row
from posattn.comparison.several.schema import Compared, ComparedArm, ComparedStudy
from posattn.figures.canvas import Style, style_of
from posattn.figures.figure import Figure, Row, make_figure
from posattn.figures.forest import Forest, ForestRow, draw_forest

Pair = tuple[ComparedStudy, ComparedArm]


def comparison_figures(found: Compared) -> list[Figure]:
    """Return one figure for each primary score, rows of one arm next to each other."""
    figures = []
    for name in dict.fromkeys(study.metric.name for study in found.studies):
        pairs = [
            (study, arm)
            for match in found.arms
            for study in found.studies
            for arm in study.arms
            if study.metric.name == name and arm.name == match.name and not arm.is_baseline
        ]
        if any(arm.difference and arm.difference.mean is not None for _, arm in pairs):
            figures.append(_figure(name, pairs, [study.label for study in found.studies]))
    return figures


def _figure(name: str, pairs: list[Pair], labels: list[str]) -> Figure:
    metric = pairs[0][0].metric
    lower = metric.better == "lower"
    styles = {label: style_of(number, is_baseline=False) for number, label in enumerate(labels)}
    forest = Forest(
        [_row(study, arm, styles[study.label]) for study, arm in pairs],
        f"difference from the study's own baseline, {metric.unit_of_difference}",
        "better" if lower else "worse",
        "worse" if lower else "better",
    )
    rows: list[Row] = [
        (study.label, arm.name, study.baseline, d.n, d.mean, d.low, d.high, arm.verdict)
        for study, arm in pairs
        if (d := arm.difference) is not None
    ]
    return make_figure(
        f"contrasts_{name}",
        f"Differences in {metric.label} by arm and study",
        f"Paired differences in {metric.label} from each study's own baseline; bar: 95 % interval. Colour "
        "and marker tell the study; filled: told apart in its own study after correction.",
        "; ".join(f"{row.name}: {row.words}" for row in forest.rows),
        lambda width: draw_forest(forest, width),
        ("study", "arm", "against", "n", "mean", "low_95", "high_95", "verdict"),
        rows,
    )


def _row(study: ComparedStudy, arm: ComparedArm, style: Style) -> ForestRow:
    row = forest_row(study.metric, f"{arm.name}, {study.label}", style, arm.difference, None)
    return replace(row, verdict=arm.verdict)
