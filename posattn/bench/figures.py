"""The figure of an architecture: how many times as fast each contestant is, over the inputs."""

from posattn.bench.results import Case
from posattn.bench.tables import heading
from posattn.figures import Figure, make_figure
from posattn.figures.canvas import style_of
from posattn.figures.figure import Row
from posattn.figures.lines import LineChart, Point, Series, draw_lines


def speed_figure(cases: list[Case], prefix: str) -> Figure:
    """Return the figure of an architecture in one stage."""
    reference = cases[0].reference().name
    names = list(dict.fromkeys(one.name for case in cases for one in case.contestants))
    ordered = [reference, *(name for name in names if name != reference)]
    series = [
        Series(name, style_of(index - 1, is_baseline=index == 0), _points(cases, name))
        for index, name in enumerate(ordered)
    ]
    inputs = [case.cell.shape() for case in cases]
    chart = LineChart(
        series,
        "input: (batch size, length)",
        f"times as fast as {reference}",
        x_ticks=[(float(index), label) for index, label in enumerate(inputs)],
    )
    rows: list[Row] = [
        (one.name, inputs[int(point.x)], point.y) for one in series for point in one.points
    ]
    cell = cases[0].cell
    parts = [prefix, cases[0].subject.replace("_", "-"), cell.stage]
    return make_figure(
        "-".join(parts if cell.mixed is None else [*parts, "mixed"]),
        heading(cases[0]),
        f"Higher is faster; {reference} is 1. Median over rounds of the ratio within a round.",
        f"Speed of {len(ordered)} encoders beside {reference}, for {len(cases)} inputs.",
        lambda width: draw_lines(chart, width),
        ("encoder", "input", "times as fast"),
        rows,
    )


def _points(cases: list[Case], name: str) -> list[Point]:
    points = []
    for index, case in enumerate(cases):
        one = case.get(name)
        if one is not None:
            points.append(Point(float(index), one.times_as_fast_as(case.reference())))
    return points
