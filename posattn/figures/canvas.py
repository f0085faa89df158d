"""A small SVG canvas: shapes, text, markers; colours are CSS variables, for light and dark."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from html import escape
from math import ceil, floor, log10
from typing import Literal

Real = float | int
"""A length or a place on the canvas."""

Anchor = Literal["start", "middle", "end"]

NUM_COLOURS = 8
DASHES = ("", "8 3", "2 3", "10 3 2 3", "4 2", "1 4", "16 4", "8 2 2 2 2 2")
MARKERS = (
    "M-4,0a4,4 0 1,0 8,0a4,4 0 1,0 -8,0z",
    "M-3.6,-3.6h7.2v7.2h-7.2z",
    "M0,-4.6L4.4,3.4H-4.4z",
    "M0,-5L5,0L0,5L-5,0z",
    "M0,4.6L4.4,-3.4H-4.4z",
    "M-1.6,-4.6h3.2v3h3v3.2h-3v3h-3.2v-3h-3v-3.2h3z",
    "M0,-4.8L4.6,-1.5L2.8,3.9H-2.8L-4.6,-1.5z",
    "M0,-5L1.5,-1.5L5,0L1.5,1.5L0,5L-1.5,1.5L-5,0L-1.5,-1.5z",
)


@dataclass(frozen=True)
class Style:
    """How one arm looks in every figure: colour class, dash and marker; the baseline is ink."""

    colour: str
    dash: str
    marker: str
    width: float = 2.0


def style_of(index: int, *, is_baseline: bool) -> Style:
    """Return the style of the arm with this number among those that are not the baseline.

    Only the baseline's line is unbroken; the pairs of dash and marker repeat after 50 arms, so
    that no arm is known by its colour alone.
    """
    if is_baseline:
        return Style("ink", "", MARKERS[0], 2.6)
    colour, turn = index % NUM_COLOURS, index // NUM_COLOURS
    dash = DASHES[1 + (index + turn) % (len(DASHES) - 1)]
    return Style(f"c{colour}", dash, MARKERS[(index + 1 + turn) % len(MARKERS)])


@dataclass
class Canvas:
    """Shapes in a box of `width` x `height` units; text is 12 units high unless told otherwise."""

    width: Real
    height: Real
    parts: list[str] = field(default_factory=list)

    def line(self, x1: Real, y1: Real, x2: Real, y2: Real, css: str, **attributes: str) -> None:
        """Draw a straight line."""
        self.parts.append(
            f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" class="{css}"'
            f"{_more(attributes)}/>"
        )

    def path(self, points: Sequence[tuple[Real, Real]], css: str, **attributes: str) -> None:
        """Draw a line through all points."""
        steps = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
        self.parts.append(f'<polyline points="{steps}" class="{css}"{_more(attributes)}/>')

    def area(self, points: Sequence[tuple[Real, Real]], css: str) -> None:
        """Fill the polygon of all points."""
        corners = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
        self.parts.append(f'<polygon points="{corners}" class="{css}"/>')

    def marker(self, x: Real, y: Real, style: Style, *, hollow: bool = False) -> None:
        """Draw the marker of a style."""
        kind = "hollow" if hollow else "solid"
        place = f"translate({x:.1f},{y:.1f})"
        self.parts.append(
            f'<path d="{style.marker}" transform="{place}" class="{kind} {style.colour}"/>'
        )

    def cross(self, x: Real, y: Real, css: str) -> None:
        """Draw an x, the sign of what ended or was refused."""
        self.line(x - 4, y - 4, x + 4, y + 4, f"cross {css}")
        self.line(x - 4, y + 4, x + 4, y - 4, f"cross {css}")

    def text(self, x: Real, y: Real, content: str, css: str = "", anchor: Anchor = "start") -> None:
        """Write one line of text; `y` is its base line."""
        name = f' class="{css}"' if css else ""
        self.parts.append(
            f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}"{name}>{escape(content)}</text>'
        )

    def to_svg(self, name: str, title: str, description: str) -> str:
        """Return the `svg` element; `name` makes the ids of title and description unique."""
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" class="figure" '
            f'viewBox="0 0 {self.width:.0f} {self.height:.0f}" role="img" '
            f'aria-labelledby="{name}-title {name}-text">'
            f'<title id="{name}-title">{escape(title)}</title>'
            f'<desc id="{name}-text">{escape(description)}</desc>{"".join(self.parts)}</svg>'
        )


@dataclass(frozen=True)
class Scale:
    """A linear map of values to units on the canvas."""

    low: Real
    high: Real
    start: Real
    end: Real

    def __call__(self, value: Real) -> float:
        """Return where the value lies."""
        share = (value - self.low) / (self.high - self.low)
        return self.start + share * (self.end - self.start)


def ticks(low: Real, high: Real, at_most: int = 6) -> list[float]:
    """Return round numbers from `low` to `high`; steps are 1, 2, 2.5 or 5 times a power of ten."""
    raw = (high - low) / max(1, at_most - 1)
    power = 10.0 ** floor(log10(raw))
    factors = (1, 2, 2.5, 5, 10)
    step = next(factor * power for factor in factors if factor * power >= raw * (1 - 1e-9))
    first, last = ceil(low / step - 1e-9), floor(high / step + 1e-9)
    return [number * step for number in range(first, last + 1)]


def tick_label(value: Real, step: Real) -> str:
    """Return the tick with as many decimals as its step needs."""
    digits = next(d for d in range(12) if abs(round(step, d) - step) < 1e-9 * step or d == 11)
    text = f"{value:,.{digits}f}"
    return "0" if float(text.replace(",", "")) == 0 else text.replace("-", "\u2212")


def text_width(content: str, size: Real = 12) -> float:
    """Return about how wide the text is in units; a wide estimate, for bold in common sans fonts."""
    return len(content) * size * 0.64


def spread(wanted: Sequence[Real], gap: Real, low: Real, high: Real) -> list[float]:
    """Return places as near as may be to those wanted, at least `gap` apart, within the bounds."""
    order = sorted(range(len(wanted)), key=lambda i: wanted[i])
    placed = [0.0] * len(wanted)
    floor_y: Real = low
    for i in order:
        placed[i] = float(max(wanted[i], floor_y))
        floor_y = placed[i] + gap
    ceiling: Real = high
    for i in reversed(order):
        placed[i] = float(min(placed[i], ceiling))
        ceiling = placed[i] - gap
    return placed


def _more(attributes: dict[str, str]) -> str:
    return "".join(
        f' {key.replace("_", "-")}="{value}"' for key, value in attributes.items() if value
    )
