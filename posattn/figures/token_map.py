"""Heat maps over the tokens of a text, with the tokens on both sides: one colour raises, another lowers."""

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

from posattn.figures.canvas import Canvas, Real, text_width
from posattn.figures.heat import GAP, HeatMap, draw_scale, strokes
from posattn.figures.lines import NARROW

CELL = 16.0
LABEL = 62.0
TURNED = 58.0
LETTERS = 8


@dataclass(frozen=True)
class TokenMaps:
    """Square maps of queries and keys on one common scale; rows of a map are queries."""

    maps: list[HeatMap]
    tokens: Sequence[str]
    up_word: str
    down_word: str


def draw_token_maps(content: TokenMaps, width: Real) -> Canvas:
    """Return the maps from left to right, and in further lines where one is full, over their scale."""
    count = len(content.tokens)
    per_line = 1 if width < NARROW else min(2, len(content.maps))
    step = (width + GAP) / per_line
    cell = min(CELL, (step - GAP - LABEL - 4) / count)
    side = cell * count
    lines = -(-len(content.maps) // per_line)
    tall = TURNED + side + 30
    canvas = Canvas(width, tall * lines + 64)
    largest = max((part.largest() for part in content.maps), default=0.0)
    for index, part in enumerate(content.maps):
        corner = (step * (index % per_line), tall * (index // per_line))
        _draw(canvas, content, part, corner, cell, largest)
    hidden = any(value is None for part in content.maps for row in part.rows for value in row)
    words = (content.down_word, content.up_word)
    draw_scale(canvas, words, tall * lines + 14, largest, has_hidden=hidden)
    return canvas


def _draw(
    canvas: Canvas,
    content: TokenMaps,
    part: HeatMap,
    corner: tuple[float, float],
    cell: float,
    largest: float,
) -> None:
    left, top = corner[0] + LABEL, corner[1] + 18 + TURNED
    own = part.largest()
    canvas.text(corner[0], corner[1] + 14, part.name, "name")
    beside = corner[0] + text_width(part.name) + 14
    canvas.text(beside, corner[1] + 14, f"up to ±{own:.2g}" if own else "nothing", "muted")
    for number, token in enumerate(content.tokens):
        shown = token if len(token) <= LETTERS else f"{token[: LETTERS - 1]}\u2026"
        middle = cell * (number + 0.5) + 4
        canvas.text(left - 5, top + middle, shown, "muted", "end")
        place = f"translate({left + middle:.1f},{top - 5:.1f}) rotate(-90)"
        canvas.parts.append(f'<text class="muted" transform="{place}">{escape(shown)}</text>')
    for css, data in strokes(part.rows, largest).items():
        place = f"translate({left:.1f},{top + cell / 2:.2f}) scale({cell:.3f})"
        canvas.parts.append(f'<path class="cell {css}" transform="{place}" d="{data}"/>')
    side = cell * len(content.tokens)
    right, bottom = left + side, top + side
    corners = [(left, top), (right, top), (right, bottom), (left, bottom), (left, top)]
    canvas.path(corners, "frame")
