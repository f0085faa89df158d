"""`Figure`: a drawing in two widths with its words and its data; and the files beside it."""

from collections.abc import Callable
from dataclasses import dataclass
from importlib.resources import files

from posattn.figures.canvas import Canvas, Real

WIDE, SMALL = 880.0, 360.0

Row = tuple[str | float | int | None, ...]


@dataclass(frozen=True)
class Figure:
    """One figure in two widths, with its caption, its text for who cannot see it, and its data."""

    name: str
    title: str
    caption: str
    description: str
    wide: str
    narrow: str
    columns: tuple[str, ...]
    rows: list[Row]


def make_figure(
    name: str,
    title: str,
    caption: str,
    description: str,
    draw: Callable[[Real], Canvas],
    columns: tuple[str, ...],
    rows: list[Row],
) -> Figure:
    """Return the figure that `draw` makes of a width."""
    wide = draw(WIDE).to_svg(f"figure-{name}", title, description)
    narrow = draw(SMALL).to_svg(f"figure-{name}-narrow", title, description)
    return Figure(name, title, caption, description, wide, narrow, columns, rows)


def standalone(svg: str) -> str:
    """Return an `svg` element as a file of its own, with colours for light and dark."""
    style = f"<style>{shared_file('figure.css')} svg{{background:var(--paper)}}</style>"
    head, rest = svg.split(">", 1)
    return f"{head}>{style}{rest}\n"


def shared_file(name: str) -> str:
    """Return `figure.css`, for drawings, `style.css`, for the page around them, or its macros."""
    return (files("posattn.figures") / name).read_text(encoding="utf-8")
