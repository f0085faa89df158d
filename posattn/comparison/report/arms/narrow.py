"""The rows of one arm out of any table that has a column `arm`."""

from dataclasses import replace

from posattn.comparison import wording
from posattn.comparison.report.links import BASELINE_MARK
from posattn.figures.blocks import Column, Section, Table, numbers, words

UP = "../"
WIDE = 3
"""A table with one row of more columns than this is turned, unless rows have ids to link to."""


def narrowed(section: Section, arm: str, baseline: str) -> Section | None:
    """Return the section with what its tables say of `arm`, or None if that is nothing."""
    tables = [block for block in section.blocks if isinstance(block, Table)]
    found = [table for table in (_narrowed(table, arm, baseline) for table in tables) if table]
    return replace(section, blocks=list(found)) if found else None


def _narrowed(table: Table, arm: str, baseline: str) -> Table | None:
    column = _arm_column(table)
    if column is None:
        return None
    mine = _rows_of(table, column, arm)
    if not mine:
        return None
    if len(mine) == 1 and len(table.columns) > WIDE and not table.row_ids:
        other = [] if arm == baseline else _rows_of(table, column, baseline)
        return _turned(table, column, [mine[0], *other[:1]])
    return _without(table, column, mine, arm)


def _arm_column(table: Table) -> int | None:
    titles = [column.title for column in table.columns]
    return titles.index("arm") if "arm" in titles and len(titles) > 1 else None


def _rows_of(table: Table, column: int, arm: str) -> list[int]:
    named = [row[column].removesuffix(BASELINE_MARK) for row in table.rows]
    return [number for number, name in enumerate(named) if name == arm]


def _turned(table: Table, column: int, rows: list[int]) -> Table:
    """Return the headings as rows and the arms as columns; rows in which all is a dash are left out."""
    titles = [(i, c.title) for i, c in enumerate(table.columns) if i != column]
    lines = [[title, *(table.rows[row][i] for row in rows)] for i, title in titles]
    kept = [line for line in lines if set(line[1:]) != {wording.NONE}]
    columns = [Column("", numeric=False), *numbers(*(table.rows[row][column] for row in rows))]
    return Table(table.caption, columns, kept, table.note, table.folded, name=table.name)


def _without(table: Table, column: int, rows: list[int], arm: str) -> Table:
    """Return these rows without the column of the arm; its runs are not folded away."""

    def place(number: int) -> int:
        return number - (number > column)

    links = {
        (rows.index(row), place(i)): target if target.startswith("#") else f"{UP}{target}"
        for (row, i), target in table.links.items()
        if row in rows and i != column
    }
    whole = (
        replace(table, caption=f"Every run of {arm}", folded="") if table.name == "runs" else table
    )
    return replace(
        whole,
        columns=[c for i, c in enumerate(table.columns) if i != column] or words("arm"),
        rows=[[cell for i, cell in enumerate(table.rows[row]) if i != column] for row in rows],
        marked={rows.index(row): mark for row, mark in table.marked.items() if row in rows},
        row_ids={rows.index(row): name for row, name in table.row_ids.items() if row in rows},
        links=links,
        files={},
    )
