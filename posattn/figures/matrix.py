"""A matrix of shares: a cell for each row and column, its number written on it, darker for more."""

from collections.abc import Sequence
from dataclasses import dataclass

from posattn.figures.canvas import Canvas, Real, text_width
from posattn.figures.lines import NARROW

DARKEST = 0.5


@dataclass(frozen=True)
class MatrixRow:
    """A row by name: shares from 0 to 1, None where there is no number, and the words for that."""

    name: str
    shares: Sequence[float | None]
    words: Sequence[str]


@dataclass(frozen=True)
class Matrix:
    """The whole plot; every row has as many shares as there are columns."""

    columns: Sequence[str]
    rows: Sequence[MatrixRow]


def draw_matrix(matrix: Matrix, width: Real) -> Canvas:
    """Return the plot, `width` units wide; on a narrow one the names of rows stand above them."""
    narrow = width < NARROW
    step = 44.0 if narrow else 28.0
    widest = max((text_width(column) for column in matrix.columns), default=0.0)
    slope = 0.7 * widest
    top = slope + 20
    names = max((text_width(row.name) for row in matrix.rows), default=0.0) + 10
    left = 2.0 if narrow else names
    right = width - (slope if not narrow else 0.4 * slope) - 4
    cell = (right - left) / max(1, len(matrix.columns))
    canvas = Canvas(width, top + step * len(matrix.rows) + 8)
    for number, column in enumerate(matrix.columns):
        _heading(canvas, column, left + cell * (number + 0.5), top - 6, narrow=narrow)
    for index, row in enumerate(matrix.rows):
        y = top + step * index + (18 if narrow else 0)
        if narrow:
            canvas.text(left, y - 5, row.name, "name")
        else:
            canvas.text(left - 8, y + 18, row.name, "name", "end")
        for number, (share, words) in enumerate(zip(row.shares, row.words, strict=True)):
            _cell(canvas, share, words, left + cell * number, y, cell)
    return canvas


def _heading(canvas: Canvas, text: str, x: Real, y: Real, *, narrow: bool) -> None:
    before = len(canvas.parts)
    canvas.text(0, 0, text, "name")
    drawn = canvas.parts.pop(before)
    angle = -68 if narrow else -45
    canvas.parts.append(f'<g transform="translate({x:.1f},{y:.1f}) rotate({angle})">{drawn}</g>')


def _cell(canvas: Canvas, share: float | None, words: str, x: Real, y: Real, width: Real) -> None:
    if share is not None:
        canvas.parts.append(
            f'<rect x="{x + 1:.1f}" y="{y + 1:.1f}" width="{width - 2:.1f}" height="24" '
            f'class="c0" fill="currentColor" fill-opacity="{DARKEST * share:.3f}"/>'
        )
    canvas.parts.append(
        f'<rect x="{x + 1:.1f}" y="{y + 1:.1f}" width="{width - 2:.1f}" height="24" class="frame"/>'
    )
    canvas.text(x + width / 2, y + 17, words, "number", "middle")
