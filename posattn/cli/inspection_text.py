"""An inspection in the terminal: shares, profiles, and heat maps of the heads that were named."""

import sys
from collections.abc import Sequence
from statistics import fmean

from rich import box
from rich.console import Console
from rich.style import Style
from rich.table import Table
from rich.text import Text

from posattn.decomposition import Inspection, Layer, Profile
from posattn.decomposition.figures import spelled
from posattn.decomposition.inspection import SHOWN
from posattn.decomposition.page import share_cells

STEPS = (-8, -2, -1, 0, 1, 2, 8)
UP, DOWN = (192, 74, 0), (11, 92, 168)
LETTERS = 8


def draw(found: Inspection, heads: Sequence[int]) -> None:
    """Print all layers; `heads` (from 0) are those shown, with their heat maps, none for all heads."""
    console = Console(file=sys.stdout)
    console.print(Text(" ".join(map(spelled, found.tokens)), style="dim"))
    for layer in found.layers:
        shown = [head for head in heads or range(layer.heads) if head < layer.heads]
        console.print(Text(f"{layer.name}: share (size in logits)", style="bold"))
        console.print(_shares(layer, shown))
        console.print(Text(f"{layer.name}: mean by distance, query minus key", style="bold"))
        console.print(_profile(layer, shown))
        for head in heads:
            _heat(console, layer, head, found.tokens)
    if not heads:
        console.print("Shares sum to 100 % in a head. Heat maps: name heads with --head, or --out.")


def _shares(layer: Layer, heads: Sequence[int]) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("head")
    for name in layer.shares:
        table.add_column(name, justify="right")
    for head in heads:
        cells = (share_cells(layer, name, head) for name in layer.shares)
        table.add_row(str(head + 1), *(f"{share} % ({size})" for share, size in cells))
    return table


def _profile(layer: Layer, heads: Sequence[int]) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("term")
    reached = next(iter(layer.profiles.values())).distances
    steps = [step for step in STEPS if step in reached]
    for step in steps:
        table.add_column(f"{step:+d}" if step else "0", justify="right")
    for name, profile in layer.profiles.items():
        table.add_row(name, *(_mean(profile, heads, step) for step in steps))
    return table


def _mean(profile: Profile, heads: Sequence[int], step: int) -> str:
    place = profile.distances.index(step)
    values = [profile.means[head][place] for head in heads]
    known = [value for value in values if value is not None]
    return f"{fmean(known):+.3f}" if known else "\u2013"


def _heat(console: Console, layer: Layer, head: int, tokens: Sequence[str]) -> None:
    names = [*layer.terms.terms, *(["logits"] if len(layer.terms.terms) > 1 else [])]
    maps = {name: layer.heat(name, head) for name in names}
    values = [abs(v) for rows in maps.values() for row in rows for v in row if v is not None]
    largest = max(values, default=0.0)
    for name, rows in maps.items():
        title = f"{layer.name}, head {head + 1}, {name}: orange raises, blue lowers, up to ±{largest:.2g}"
        console.print(Text(title, style="bold"))
        for token, row in zip(tokens[:SHOWN], rows, strict=True):
            line = Text(f"{spelled(token)[:LETTERS]:>{LETTERS}} ")
            for value in row:
                line.append(*_cell(value, largest))
            console.print(line)


def _cell(value: float | None, largest: float) -> tuple[str, Style]:
    """Return a place two letters wide; the sign is written too, for who cannot see the colours."""
    if value is None:
        return " .", Style(dim=True)
    strength = (abs(value) / largest) ** 0.5 if largest else 0.0
    if strength < 0.125:
        return "  ", Style()
    red, green, blue = UP if value > 0 else DOWN
    mixed = (round(255 + (part - 255) * strength) for part in (red, green, blue))
    ink = "white" if strength > 0.6 else "black"
    colour = "rgb({},{},{})".format(*mixed)
    return (" +" if value > 0 else " \u2212"), Style(color=ink, bgcolor=colour)
