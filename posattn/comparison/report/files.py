"""The files beside a report's pages: pictures and their data."""

import csv
import io
from collections.abc import Iterable, Sequence
from pathlib import Path

from posattn.figures import Figure, standalone
from posattn.figures.figure import Row
from posattn.training.durable import write_bytes


def write_figures(figures: Iterable[Figure], folder: Path) -> None:
    """Write each figure as NAME.svg and its data as NAME.csv."""
    for figure in figures:
        picture, data = standalone(figure.wide), to_csv(figure.columns, figure.rows)
        write_bytes(folder / f"{figure.name}.svg", picture.encode(), synced=False)
        write_bytes(folder / f"{figure.name}.csv", data.encode(), synced=False)


def to_csv(columns: Sequence[str], rows: Iterable[Row]) -> str:
    """Return the rows under their headings as CSV; what is missing is empty."""
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows(["" if value is None else value for value in row] for row in rows)
    return buffer.getvalue()
