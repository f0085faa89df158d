"""Grids of numbers, rows by columns, side by side: more colour is more, and every number is written.

The colours are one hue in six steps from the paper to a tone that ink can still be read on.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from posattn.figures.canvas import Canvas, Real, text_width

STEPS = 5
ROW = 22.0
GAP = 26.0
WIDEST_CELL = 52.0


@dataclass(frozen=True)
class Grid:
    """One grid under its name; a cell without a number is None."""

    name: str
    rows: Sequence[str]
    columns: Sequence[str]
    values: Sequence[Sequence[float | None]]


@dataclass(frozen=True)
class Grids:
    """Grids on one common scale from 0 to `largest`; `columns_are` says what the columns are."""

    grids: list[Grid]
    columns_are: str
    largest: float
    digits: int = 1


def draw_grids(content: Grids, width: Real) -> Canvas:
    """Return the grids from left to right, and in further lines where one is full."""
    label = max((text_width(row) for grid in content.grids for row in grid.rows), default=0.0) + 6
    most = max((len(grid.columns) for grid in content.grids), default=1)
    cell = min(WIDEST_CELL, (width - label - 4) / max(most, 1))
    step = label + cell * most + GAP
    per_line = max(1, int((width + GAP) // step))
    heights = [ROW * (len(grid.rows) + 1) + 40 for grid in content.grids]
    lines = [heights[start : start + per_line] for start in range(0, len(heights), per_line)]
    canvas = Canvas(width, sum(max(line) for line in lines) + 4)
    top = 0.0
    for number, line in enumerate(lines):
        for index in range(len(line)):
            grid = content.grids[number * per_line + index]
            _draw(canvas, content, grid, (step * index, top), label, cell)
        top += max(line)
    return canvas


def _draw(
    canvas: Canvas,
    content: Grids,
    grid: Grid,
    corner: tuple[float, float],
    label: float,
    cell: float,
) -> None:
    left, top = corner[0] + label, corner[1] + 34
    canvas.text(corner[0], corner[1] + 14, grid.name, "name")
    canvas.text(corner[0], top, content.columns_are, "muted")
    for column, name in enumerate(grid.columns):
        canvas.text(left + cell * (column + 0.5), top, name, "muted", "middle")
    digits = content.digits if cell >= 34 else 0
    for row, name in enumerate(grid.rows):
        y = top + 6 + ROW * row
        canvas.text(corner[0], y + 15, name, "muted")
        for column, value in enumerate(grid.values[row]):
            x = left + cell * column
            _cell(canvas, x, y, cell, 0.0 if value is None else value / (content.largest or 1.0))
            text = "\u2013" if value is None else f"{value:.{digits}f}"
            canvas.text(x + cell / 2, y + 15, text, "number", "middle")


def _cell(canvas: Canvas, x: float, y: float, width: float, share: float) -> None:
    level = round(min(max(share, 0.0), 1.0) * STEPS)
    if level:
        place = f"translate({x:.1f},{y:.1f}) scale({width - 1:.1f} {ROW - 1:.1f})"
        canvas.parts.append(f'<path class="cell down l{level}" transform="{place}" d="M0 .5h1"/>')
