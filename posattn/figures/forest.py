"""The forest plot: one row per arm, its paired difference from the baseline with both intervals."""

from dataclasses import dataclass

from posattn.figures.canvas import (
    Canvas,
    Real,
    Scale,
    Style,
    text_width,
    tick_label,
    ticks,
)
from posattn.figures.lines import NARROW

REACH = 1.25


@dataclass(frozen=True)
class ForestRow:
    """One arm: name, style, the 95 % interval, the corrected one, and the words beside it."""

    name: str
    style: Style
    mean: float | None
    low: float | None
    high: float | None
    corrected_low: float | None
    corrected_high: float | None
    words: str
    verdict: str


@dataclass(frozen=True)
class Forest:
    """The whole plot; `left_word` and `right_word` say what either side of `reference` means."""

    rows: list[ForestRow]
    x_label: str
    left_word: str
    right_word: str
    reference: float = 0.0


def draw_forest(forest: Forest, width: Real) -> Canvas:
    """Return the plot, `width` units wide; on a narrow one the words stand above each bar."""
    narrow = width < NARROW
    step, top = (46.0, 40.0) if narrow else (32.0, 40.0)
    bottom = top + step * len(forest.rows)
    canvas = Canvas(width, bottom + 48)
    names = max((text_width(row.name) for row in forest.rows), default=0.0) + 34
    words = max((text_width(row.words) for row in forest.rows), default=0.0) + 4
    left, right = (14.0, width - 14) if narrow else (names, width - words)
    x = _scale(forest, left, right)
    _axes(canvas, forest, x, top, bottom)
    for index, row in enumerate(forest.rows):
        middle = top + step * (index + 0.5) + (9 if narrow else 0)
        _row(canvas, row, x, middle)
        text_y = middle - 16 if narrow else middle + 4
        canvas.marker(8, text_y - 4, row.style, hollow=_open(row))
        canvas.text(20, text_y, row.name, f"name halo {row.style.colour}")
        canvas.text(width - 2, text_y, row.words, "number halo", "end")
    return canvas


def _scale(forest: Forest, left: Real, right: Real) -> Scale:
    """Cover all means and the reference; intervals may widen that by `REACH` times the span."""
    rows = forest.rows
    means = [row.mean for row in rows if row.mean is not None] + [forest.reference]
    low, high = min(means), max(means)
    halves = [row.high - row.mean for row in rows if row.high is not None and row.mean is not None]
    span = max(high - low, min(halves, default=0.0)) or 1.0
    lows = [row.low for row in rows if row.low is not None]
    highs = [row.high for row in rows if row.high is not None]
    low = max(min([low, *lows]), low - REACH * span)
    high = min(max([high, *highs]), high + REACH * span)
    if low == high:
        low, high = low - span / 2, high + span / 2
    room = 0.06 * (high - low)
    return Scale(low - room, high + room, left, right)


def _axes(canvas: Canvas, forest: Forest, x: Scale, top: Real, bottom: Real) -> None:
    values = ticks(x.low, x.high, 4 if canvas.width < NARROW else 9)
    step = values[1] - values[0] if len(values) > 1 else 1.0
    for value in values:
        place = x(value)
        canvas.line(place, top - 6, place, bottom, "grid")
        canvas.text(place, bottom + 16, tick_label(value, step), "muted", "middle")
    place = x(forest.reference)
    canvas.line(place, top - 12, place, bottom, "zero")
    canvas.text((x.start + x.end) / 2, bottom + 36, forest.x_label, "muted", "middle")
    canvas.text(x.start, 14, f"\u2190 {forest.left_word}", "muted")
    canvas.text(x.end, 14, f"{forest.right_word} \u2192", "muted", "end")


def _row(canvas: Canvas, row: ForestRow, x: Scale, y: Real) -> None:
    if row.mean is None:
        return
    colour = row.style.colour
    _interval(canvas, row.corrected_low, row.corrected_high, x, y, f"thin {colour}")
    _interval(canvas, row.low, row.high, x, y, f"thick {colour}")
    canvas.marker(x(row.mean), y, row.style, hollow=_open(row))


def _interval(
    canvas: Canvas, low: float | None, high: float | None, x: Scale, y: Real, css: str
) -> None:
    """Draw an interval; where it leaves the plot it ends in an arrow head."""
    if low is None or high is None:
        return
    start, end = max(low, x.low), min(high, x.high)
    canvas.line(x(start), y, x(end), y, css)
    for value, edge, side in ((low, x.low, -1), (high, x.high, 1)):
        outside = value < edge if side < 0 else value > edge
        tip = x(edge if outside else value)
        if outside:
            head = [(tip - side * 6, y - 4), (tip, y), (tip - side * 6, y + 4)]
            canvas.path(head, css.replace("thick", "thin"))
        elif css.startswith("thin"):
            canvas.line(tip, y - 4, tip, y + 4, css)


def _open(row: ForestRow) -> bool:
    return row.verdict in ("indistinguishable", "not tested")
