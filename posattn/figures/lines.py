"""A line chart with bands: direct labels where there is room, a legend below where there is not."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from posattn.figures.canvas import (
    Canvas,
    Real,
    Scale,
    Style,
    spread,
    text_width,
    tick_label,
    ticks,
)

NARROW = 520
GAP = 15.0
RING = "M-9,0a9,9 0 1,0 18,0a9,9 0 1,0 -18,0z"
BOX = "M-8.5,-8.5h17v17h-17z"


@dataclass(frozen=True)
class Point:
    """One value with its sample standard deviation, if it has one."""

    x: Real
    y: Real
    sd: float | None = None


@dataclass(frozen=True)
class Series:
    """One arm's line; `ended` draws a cross at its end, `refused` are x where it cannot run.

    `ringed` and `boxed` points get a ring or a box around them.
    """

    name: str
    style: Style
    points: list[Point]
    refused: list[Real] = field(default_factory=list)
    ended: bool = False
    thin: bool = False
    ringed: list[Point] = field(default_factory=list)
    boxed: list[Point] = field(default_factory=list)


@dataclass(frozen=True)
class LineChart:
    """All that a line chart shows; `x_ticks` are given where round numbers would not do.

    `refused_word` says what a cross above the plot means.
    """

    series: list[Series]
    x_label: str
    y_label: str
    x_ticks: list[tuple[float, str]] | None = None
    x_format: Callable[[float, float], str] = tick_label
    x_from_zero: bool = False
    refused_word: str = "cannot run"


@dataclass(frozen=True)
class Frame:
    """Where the plot lies on its canvas, and its two scales."""

    left: Real
    right: Real
    top: Real
    bottom: Real
    x: Scale
    y: Scale


def draw_lines(chart: LineChart, width: Real) -> Canvas:
    """Return the chart, `width` units wide; below 520 units the names go under the plot."""
    named = [series for series in chart.series if not series.thin]
    narrow = width < NARROW
    columns = _legend_columns(named, width)
    legend_height = 18.0 * -(-len(named) // columns) + 8 if narrow else 0.0
    height = (300.0 if narrow else 400.0) + legend_height
    canvas = Canvas(width, height)
    margin = 14.0 if narrow else 38 + max((text_width(s.name) for s in named), default=0.0)
    frame = _frame(chart, width - margin, height - legend_height - 46)
    _axes(canvas, chart, frame, narrow)
    for series in chart.series:
        _band(canvas, series, frame)
    for series in chart.series:
        _surrounds(canvas, series, frame)
    for series in chart.series:
        _line(canvas, series, frame)
    _refusals(canvas, chart, frame)
    if narrow:
        _legend(canvas, named, columns, height - legend_height + 14)
    else:
        _direct_labels(canvas, named, frame)
    return canvas


def _frame(chart: LineChart, right: Real, bottom: Real) -> Frame:
    points = [point for series in chart.series for point in series.points]
    left, top = 46.0, 40.0 if any(series.refused for series in chart.series) else 26.0
    edges = [p.y - (p.sd or 0) for p in points] + [p.y + (p.sd or 0) for p in points]
    low, high = (min(edges), max(edges)) if edges else (0.0, 1.0)
    room = 0.05 * (high - low) or 0.05 * abs(high) or 1.0
    xs = [p.x for p in points] + [x for s in chart.series for x in s.refused]
    xs += [x for x, _ in chart.x_ticks or []] + [0.0] * chart.x_from_zero
    x_low, x_high = (min(xs), max(xs)) if xs else (0.0, 1.0)
    if x_low == x_high:
        x_low, x_high = x_low - 0.5, x_high + 0.5
    x = Scale(x_low, x_high, left + 10, right - 8)
    return Frame(left, right, top, bottom, x, Scale(low - room, high + room, bottom, top))


def _axes(canvas: Canvas, chart: LineChart, frame: Frame, narrow: bool) -> None:
    values = ticks(frame.y.low, frame.y.high)
    step = values[1] - values[0] if len(values) > 1 else 1.0
    for value in values:
        y = frame.y(value)
        canvas.line(frame.left, y, frame.right, y, "grid")
        canvas.text(frame.left - 6, y + 4, tick_label(value, step), "muted", "end")
    canvas.text(2, 14, chart.y_label, "muted")
    canvas.line(frame.left, frame.bottom, frame.right, frame.bottom, "axis")
    for value, label in _x_ticks(chart, frame, narrow):
        x = frame.x(value)
        canvas.line(x, frame.bottom, x, frame.bottom + 4, "axis")
        half = text_width(label) / 2
        middle = min(max(x, half), canvas.width - half)
        canvas.text(middle, frame.bottom + 17, label, "muted", "middle")
    middle = (frame.left + frame.right) / 2
    canvas.text(middle, frame.bottom + 36, chart.x_label, "muted", "middle")


def _x_ticks(chart: LineChart, frame: Frame, narrow: bool) -> list[tuple[float, str]]:
    if chart.x_ticks is not None:
        return chart.x_ticks
    values = ticks(frame.x.low, frame.x.high, 4 if narrow else 7)
    step = values[1] - values[0] if len(values) > 1 else 1.0
    return [(value, chart.x_format(value, step)) for value in values]


def _band(canvas: Canvas, series: Series, frame: Frame) -> None:
    points = [p for p in series.points if p.sd is not None]
    if len(points) < 2 or series.thin:
        return
    upper = [(frame.x(p.x), frame.y(p.y + (p.sd or 0))) for p in points]
    lower = [(frame.x(p.x), frame.y(p.y - (p.sd or 0))) for p in reversed(points)]
    canvas.area(upper + lower, f"band {series.style.colour}")


def _line(canvas: Canvas, series: Series, frame: Frame) -> None:
    places = [(frame.x(p.x), frame.y(p.y)) for p in series.points]
    if not places:
        return
    width = 1.0 if series.thin else series.style.width
    css = f"line {series.style.colour}"
    canvas.path(places, css, stroke_dasharray=series.style.dash, stroke_width=f"{width}")
    if series.ended:
        canvas.cross(*places[-1], series.style.colour)
    if not series.thin:
        for place in places if len(places) <= 12 else places[:: len(places) // 8]:
            canvas.marker(*place, series.style)


def _surrounds(canvas: Canvas, series: Series, frame: Frame) -> None:
    for points, shape in ((series.ringed, RING), (series.boxed, BOX)):
        for point in points:
            around = replace(series.style, marker=shape)
            canvas.marker(frame.x(point.x), frame.y(point.y), around, hollow=True)


def _refusals(canvas: Canvas, chart: LineChart, frame: Frame) -> None:
    """Put crosses for lengths that an arm refuses above the plot, next to each other."""
    taken: dict[float, int] = {}
    for series in chart.series:
        for value in series.refused:
            place = frame.x(value) - 12 * taken.get(value, 0)
            taken[value] = taken.get(value, 0) + 1
            canvas.cross(place, frame.top - 10, series.style.colour)
    if taken:
        left = min(frame.x(value) - 12 * (count - 1) for value, count in taken.items())
        canvas.text(left - 10, frame.top - 6, chart.refused_word, "muted", "end")


def _direct_labels(canvas: Canvas, named: Sequence[Series], frame: Frame) -> None:
    shown = [series for series in named if series.points]
    wanted = [frame.y(series.points[-1].y) for series in shown]
    placed = spread(wanted, GAP, frame.top, frame.bottom)
    for series, y_end, y in zip(shown, wanted, placed, strict=True):
        x_end = frame.x(series.points[-1].x)
        start, stop = x_end + 6, frame.right + 14
        canvas.path(
            [(start, y_end), (frame.right - 2, y_end), (stop, y)], f"leader {series.style.colour}"
        )
        canvas.marker(stop + 4, y, series.style)
        canvas.text(stop + 13, y + 4, series.name, f"name {series.style.colour}")


def _legend_columns(named: Sequence[Series], width: Real) -> int:
    widest = max((text_width(series.name) for series in named), default=0.0) + 50
    return max(1, int(width // widest))


def _legend(canvas: Canvas, named: Sequence[Series], columns: int, top: Real) -> None:
    step = canvas.width / columns
    for index, series in enumerate(named):
        x, y = step * (index % columns) + 4, top + 18 * (index // columns)
        canvas.path(
            [(x, y), (x + 28, y)],
            f"line {series.style.colour}",
            stroke_dasharray=series.style.dash,
            stroke_width=f"{series.style.width}",
        )
        canvas.marker(x + 14, y, series.style)
        canvas.text(x + 34, y + 4, series.name, f"name {series.style.colour}")
