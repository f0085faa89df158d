"""Heat maps of signed numbers side by side: one colour raises, another lowers, dots mark what is hidden.

Colour grows with the square root of a number, so that a quarter of the largest still looks like half.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby

from posattn.figures.canvas import Canvas, Real
from posattn.figures.lines import NARROW

LEVELS = 8
GAP = 18.0


@dataclass(frozen=True)
class HeatMap:
    """One square of numbers, row by row; None is a place that cannot be seen."""

    name: str
    rows: Sequence[Sequence[float | None]]

    def largest(self) -> float:
        """Return the largest absolute number."""
        return max((abs(v) for row in self.rows for v in row if v is not None), default=0.0)


@dataclass(frozen=True)
class HeatMaps:
    """Maps on one common scale, and the words on their axes."""

    maps: list[HeatMap]
    x_label: str
    y_label: str
    up_word: str
    down_word: str


def draw_heat(heat: HeatMaps, width: Real) -> Canvas:
    """Return the maps in a row of up to four, or of two on a narrow canvas, over their scale."""
    columns = min(2 if width < NARROW else 4, len(heat.maps))
    side = min((width - 20 - GAP * (columns - 1)) / columns, 232.0)
    lines = -(-len(heat.maps) // columns)
    step = side + 46
    has_hidden = any(v is None for part in heat.maps for row in part.rows for v in row)
    top = step * lines + 20
    canvas = Canvas(width, top + 22 + 20 * has_hidden + 18 * (width < NARROW))
    largest = max((part.largest() for part in heat.maps), default=0.0)
    for index, part in enumerate(heat.maps):
        x = 18 + (side + GAP) * (index % columns)
        y = 20 + step * (index // columns)
        _map(canvas, part, x, y, side, largest)
        canvas.text(x, y + side + 16, f"{heat.x_label} →", "muted")
        if index % columns == 0:
            _upright(canvas, 11, y + side, f"← {heat.y_label}")
    draw_scale(canvas, (heat.down_word, heat.up_word), top, largest, has_hidden=has_hidden)
    return canvas


def _map(canvas: Canvas, part: HeatMap, x: Real, y: Real, side: Real, largest: float) -> None:
    own = part.largest()
    range_ = f"up to ±{own:.2g}" if own else "nothing"
    canvas.text(x, y - 6, part.name, "name")
    canvas.text(x + side, y - 6, range_, "muted", "end")
    size = side / max(len(part.rows), 1)
    for css, data in strokes(part.rows, largest).items():
        place = f"translate({x:.1f},{y + size / 2:.2f}) scale({size:.3f})"
        canvas.parts.append(f'<path class="cell {css}" transform="{place}" d="{data}"/>')
    corners = [(x, y), (x + side, y), (x + side, y + side), (x, y + side), (x, y)]
    canvas.path(corners, "frame")


def strokes(rows: Sequence[Sequence[float | None]], largest: float) -> dict[str, str]:
    """Return one path per level: horizontal strokes, one unit thick, over runs of equal level."""
    paths: dict[str, list[str]] = {}
    for y, row in enumerate(rows):
        x = 0
        for css, run in groupby(_level(value, largest) for value in row):
            length = len(list(run))
            if css:
                paths.setdefault(css, []).append(f"M{x} {y}h{length}")
            x += length
    return {css: "".join(steps) for css, steps in sorted(paths.items())}


def _level(value: float | None, largest: float) -> str:
    if value is None:
        return "hid"
    share = value / largest if largest else 0.0
    level = round(abs(share) ** 0.5 * LEVELS)
    return f"{'up' if share > 0 else 'down'} l{level}" if level else ""


def draw_scale(
    canvas: Canvas, ends: tuple[str, str], top: Real, largest: float, *, has_hidden: bool
) -> None:
    """Draw the bar of levels with its numbers and what its left and right end mean."""
    left, step = 30.0, 12.0
    for index in range(-LEVELS, LEVELS + 1):
        css = _level(float(index * abs(index)), float(LEVELS**2))
        x = left + step * (index + LEVELS)
        if css:
            place = f"translate({x:.0f},{top - 12:.0f}) scale({step:.0f} 12)"
            canvas.parts.append(f'<path class="cell {css}" transform="{place}" d="M0 .5h1"/>')
    right = left + step * (2 * LEVELS + 1)
    corners = [(left, top - 12), (right, top - 12), (right, top), (left, top), (left, top - 12)]
    canvas.path(corners, "frame")
    quarter = largest / 4
    marks = {
        -LEVELS: -largest,
        -LEVELS // 2: -quarter,
        0: 0.0,
        LEVELS // 2: quarter,
        LEVELS: largest,
    }
    for index, value in marks.items() if largest else ():
        x = left + step * (index + LEVELS + 0.5)
        text = f"{value:+.2g}".replace("-", "\u2212") if value else "0"
        canvas.text(x, top + 14, text, "muted", "middle")
    words = [f"left end: {ends[0]}", f"right end: {ends[1]}"]
    below = top + 14
    if canvas.width < NARROW:
        below += 18
        canvas.text(18, below, f"{words[0]}; {words[1]}", "muted")
    else:
        for number, text in enumerate(words):
            canvas.text(right + 22, top - 2 + 16 * number, text, "muted")
    if has_hidden:
        place = f"translate(18,{below + 10:.0f}) scale(6)"
        canvas.parts.append(f'<path class="cell hid" transform="{place}" d="M0 .5h4M0 1.5h4"/>')
        canvas.text(50, below + 20, "the query cannot see the key", "muted")


def _upright(canvas: Canvas, x: Real, y: Real, content: str) -> None:
    canvas.parts.append(
        f'<text class="muted" transform="translate({x:.1f},{y:.1f}) rotate(-90)">{content}</text>'
    )
