"""Links within a report: names of arms to their pages, pictures to their files, runs to their rows."""

import re
from collections.abc import Mapping
from dataclasses import replace
from hashlib import sha256
from urllib.parse import quote

from posattn.figures.blocks import Block, Picture, Section, Table

ARM_COLUMNS = ("arm", "first", "second", "against", "baseline")
"""Columns of words whose cells are names of arms where they equal one."""

BASELINE_MARK = " (baseline)"


def slug(name: str) -> str:
    """Return a name for files and ids: as it is where it is portable, else with a digest behind."""
    plain = re.sub(r"[^A-Za-z0-9._-]", "-", name)
    return plain if plain == name else f"{plain}-{sha256(name.encode()).hexdigest()[:6]}"


def arm_page(arm: str) -> str:
    """Return where the page of an arm lies, seen from the study folder."""
    return f"arms/{slug(arm)}.html"


def run_id(arm: str, seed: int) -> str:
    """Return the id of a run's row."""
    return f"run-{slug(arm)}-{seed}"


def file_target(path: str) -> str:
    """Return the link to a file given by its path, with what URLs reserve escaped."""
    return quote(path)


def link_up(sections: list[Section], arms: Mapping[str, str], figures: str) -> list[Section]:
    """Return the sections with every arm's name in a table linked, and files under pictures.

    `arms` are the targets by name, `figures` is the folder of the pictures, both seen from the page.
    """
    return [
        replace(section, blocks=[_linked(block, arms, figures) for block in section.blocks])
        for section in sections
    ]


def _linked(block: Block, arms: Mapping[str, str], figures: str) -> Block:
    if isinstance(block, Picture):
        return replace(block, folder=figures)
    if isinstance(block, Table):
        return replace(block, links={**_arm_links(block, arms), **block.links})
    return block


def _arm_links(table: Table, arms: Mapping[str, str]) -> dict[tuple[int, int], str]:
    links = {
        (-1, number): arms[column.title]
        for number, column in enumerate(table.columns)
        if column.title in arms
    }
    for number, column in enumerate(table.columns):
        if column.numeric or column.title not in ARM_COLUMNS:
            continue
        for row, cells in enumerate(table.rows):
            name = cells[number].removesuffix(BASELINE_MARK)
            if name in arms:
                links[row, number] = arms[name]
    return links
