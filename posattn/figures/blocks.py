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
    """A table whose first column names the row; `folded` puts it behind a line to click.

    `name` makes a lasting id; `links` are targets by (row, column), row -1 being the headings;
    `row_ids` are ids by row; `files` are targets by label, shown below.
    """

    kind: ClassVar[str] = "table"
    caption: str
    columns: list[Column]
    rows: list[list[str]]
    note: str = ""
    folded: str = ""
    marked: dict[int, str] = field(default_factory=dict)
    name: str = ""
    links: dict[tuple[int, int], str] = field(default_factory=dict)
    row_ids: dict[int, str] = field(default_factory=dict)
    files: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Picture:
    """A figure; `folder` is where its picture and its data lie, seen from the page."""

    kind: ClassVar[str] = "figure"
    figure: Figure
    folder: str = ""

    @property
    def files(self) -> dict[str, str]:
        """Return the targets of its picture and its data, by label."""
        if not self.folder:
            return {}
        place = f"{self.folder}/{self.figure.name}"
        return {"SVG": f"{place}.svg", "data (CSV)": f"{place}.csv"}


Block = Text | Bullets | Code | Table | Picture


@dataclass(frozen=True)
class Section:
    """A part of the page under its own heading."""

    id: str
    title: str
    blocks: list[Block]

    @property
    def anchored(self) -> list[tuple[str, Block]]:
        """Return the blocks with an id each; a name makes one that lasts when others come before."""
        return [
            (_id_of(block) or f"{self.id}-{number}", block)
            for number, block in enumerate(self.blocks, start=1)
        ]


def _id_of(block: Block) -> str:
    if isinstance(block, Picture):
        return f"figure-{block.figure.name}"
    return f"table-{block.name}" if isinstance(block, Table) and block.name else ""


def words(*titles: str) -> list[Column]:
    """Return columns of words."""
    return [Column(title, numeric=False) for title in titles]


def numbers(*titles: str) -> list[Column]:
    """Return columns of numbers."""
    return [Column(title) for title in titles]
