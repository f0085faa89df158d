"""The figures of one arm: the learning curves of all its seeds, loss by length and by position."""

from posattn.comparison import wording
from posattn.comparison.report.links import slug
from posattn.comparison.report.study_figures import length_figure, mean_curve, position_figure
from posattn.comparison.results_schema import ArmResult, Results, RunResult
from posattn.figures import Figure, make_figure
from posattn.figures.canvas import Style, style_of
from posattn.figures.figure import Row
from posattn.figures.lines import LineChart, Point, Series, draw_lines


def arm_figures(results: Results, arm: ArmResult, styles: dict[str, Style]) -> dict[str, Figure]:
    """Return the figures that the results of the arm allow, by `curves`, `length`, `position`."""
    shown = list({each.name: each for each in (arm, results.baseline)}.values())
    name = slug(arm.name)
    made = {
        "curves": _curves(results, arm),
        "length": length_figure(results, shown, styles, f"{name}-length"),
        "position": position_figure(shown, styles, f"{name}-position"),
    }
    return {key: figure for key, figure in made.items() if figure is not None}


def _curves(results: Results, arm: ArmResult) -> Figure | None:
    runs = [run for run in results.runs if run.arm == arm.name and run.curve]
    if not runs:
        return None
    seeds = [_seed(run, style_of(number, is_baseline=False)) for number, run in enumerate(runs)]
    baseline = results.baseline
    others = []
    if baseline.name != arm.name and baseline.curve:
        style = style_of(0, is_baseline=True)
        others = [mean_curve(baseline, style, name=f"{baseline.name}, mean")]
    chart = LineChart(
        [*others, *seeds],
        "training tokens",
        "validation loss, nats per masked token",
        x_format=lambda value, _: wording.large(value),
        x_from_zero=True,
    )
    beside = f", beside the mean of {baseline.name} with its band" if others else ""
    caption = f"Learning curves of {arm.name}, one for each seed{beside}. "
    rows: list[Row] = [
        (run.seed, run.state, point.step, point.tokens, point.loss)
        for run in runs
        for point in run.curve
    ]
    return make_figure(
        f"{slug(arm.name)}-curves",
        f"Learning curves of {arm.name}",
        f"{caption}A cross is where a run diverged or failed.",
        "; ".join(_described(run) for run in runs),
        lambda width: draw_lines(chart, width),
        ("seed", "state", "step", "tokens", "loss"),
        rows,
    )


def _seed(run: RunResult, style: Style) -> Series:
    points = [Point(p.tokens, p.loss) for p in run.curve if p.loss is not None]
    name = f"seed {run.seed}" if run.state == "finished" else f"seed {run.seed}, {run.state}"
    return Series(name, style, points, ended=run.state in ("diverged", "failed", "killed"))


def _described(run: RunResult) -> str:
    losses = [point.loss for point in run.curve if point.loss is not None]
    if not losses:
        return f"seed {run.seed}: no loss was recorded"
    return f"seed {run.seed} ({run.state}): from {losses[0]:.3f} to {losses[-1]:.3f}"
