"""The building blocks of a report page, the same for HTML and Markdown."""

from dataclasses import dataclass, field
from typing import ClassVar

from posattn.figures.figure import Figure


@dataclass(frozen=True)
class Text:
    """A paragraph."""

    kind: ClassVar[str] = "text"
    text: str


@dataclass(frozen=True)
class Bullets:
    """A list of sentences."""

    kind: ClassVar[str] = "bullets"
    items: list[str]


@dataclass(frozen=True)
class Code:
    """Commands to copy."""

    kind: ClassVar[str] = "code"
    lines: list[str]


@dataclass(frozen=True)
class Column:
    """A column heading; numbers stand at the right."""

    title: str
    numeric: bool = True


@dataclass(frozen=True)
class Table:
    """A table whose first column names the row; `folded` puts it behind a line to click."""

    kind: ClassVar[str] = "table"
    caption: str
    columns: list[Column]
    rows: list[list[str]]
    note: str = ""
    folded: str = ""
    marked: dict[int, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Picture:
    """A figure."""

    kind: ClassVar[str] = "figure"
    figure: Figure


Block = Text | Bullets | Code | Table | Picture


@dataclass(frozen=True)
class Section:
    """A part of the page under its own heading."""

    id: str
    title: str
    blocks: list[Block]


def words(*titles: str) -> list[Column]:
    """Return columns of words."""
    return [Column(title, numeric=False) for title in titles]


def numbers(*titles: str) -> list[Column]:
    """Return columns of numbers."""
    return [Column(title) for title in titles]
