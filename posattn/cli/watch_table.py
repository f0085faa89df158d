"""The table of `posattn watch`: one row per run, as many as the terminal has room for."""

from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from posattn.cli.study_progress import minutes

if TYPE_CHECKING:
    from rich.console import RenderableType

SHADES = "\u2581\u2582\u2583\u2584\u2585\u2586\u2587\u2588"
SPARK_WIDTH = 16
ROOM = 8
"""Lines of the screen that are no rows of the table."""

WIDE = 96
STYLES = {
    "waiting": "dim",
    "training": "cyan",
    "evaluating": "cyan",
    "finished": "green",
    "interrupted": "yellow",
}
ORDER = ("training", "evaluating", "failed", "diverged", "killed", "interrupted", "finished")


def view(snapshot: Any, width: int, height: int | None = None) -> "RenderableType":
    """Return the headline over the table; with a `height`, the liveliest runs that fit into it."""
    from rich.console import Group
    from rich.text import Text

    runs = list(snapshot.runs)
    left_out = 0
    reasons = sum(run.reason is not None for run in runs)
    if height is not None and len(runs) + reasons > height - ROOM:
        room = max(1, (height - ROOM) - min(reasons, height // 3))
        by_interest = sorted(runs, key=_interest)
        left_out, runs = len(runs) - room, by_interest[:room]
    parts: list[RenderableType] = [Text(headline(snapshot), style="bold")]
    if runs:
        parts.append(_table(runs, width))
    if left_out:
        parts.append(Text(f"and {left_out} more runs; --once shows all", style="dim"))
    parts += [Text(f"{run.name}: {run.reason}", style="red") for run in runs if run.reason]
    parts += [Text(note, style="yellow") for note in snapshot.notes]
    return Group(*parts)


def headline(snapshot: Any) -> str:
    """Return folder, counts and the time left in one line."""
    if snapshot.waiting_for is not None:
        return f"Waiting: {snapshot.waiting_for}"
    counts = snapshot.counts
    finished = counts.pop("finished", 0)
    parts = [f"{snapshot.folder}: {finished} of {len(snapshot.runs)} runs finished"]
    parts += [f"{counts[state]} {state}" for state in sorted(counts, key=_place)]
    silent = sum(run.silent for run in snapshot.runs)
    if silent:
        parts.append(f"{silent} silent: their process may be gone")
    if snapshot.seconds_left is not None:
        parts.append(f"about {minutes(snapshot.seconds_left)} of training left")
    parts += [f"see {report}" for report in snapshot.reports if snapshot.ended]
    return ", ".join(parts)


def sparkline(losses: Sequence[float], width: int = SPARK_WIDTH) -> str:
    """Return the curve as a row of blocks, each the mean of its part, the lowest loss the lowest."""
    if len(losses) < 2:
        return ""
    count = min(width, len(losses))
    edges = [round(i * len(losses) / count) for i in range(count + 1)]
    means = [sum(losses[a:b]) / (b - a) for a, b in pairwise(edges)]
    low, high = min(means), max(means)
    span = high - low
    if not span:
        return SHADES[0] * count
    return "".join(SHADES[round((mean - low) / span * (len(SHADES) - 1))] for mean in means)


def _table(runs: Sequence[Any], width: int) -> "RenderableType":
    from rich import box
    from rich.table import Table
    from rich.text import Text

    wide = width >= WIDE
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("run", overflow="fold")
    table.add_column("state", overflow="fold")
    for title in ("step", "loss", "tokens/s", "left", *(["evaluation"] if wide else [])):
        table.add_column(title, justify="right", no_wrap=True)
    if wide:
        table.add_column("loss so far", no_wrap=True)
    for run in runs:
        cells = [run.name, _state(run), _step(run), _loss(run.loss), _speed(run), _left(run)]
        if wide:
            cells += [_evaluation(run), sparkline(run.losses)]
        style = STYLES.get(run.state, "red")
        table.add_row(*(Text(cell, style=style if i == 1 else "") for i, cell in enumerate(cells)))
    return table


def _interest(run: Any) -> int:
    return _place(run.state)


def _place(state: str) -> int:
    return ORDER.index(state) if state in ORDER else len(ORDER)


def _state(run: Any) -> str:
    if run.silent:
        return f"{run.state}, silent for {minutes(run.silent_seconds)}"
    return str(run.state)


def _step(run: Any) -> str:
    return f"{run.step} of {run.steps}" if run.steps else str(run.step or "")


def _loss(value: float | None) -> str:
    return "" if value is None else f"{value:.3f}"


def _speed(run: Any) -> str:
    return f"{run.tokens_per_second:,.0f}" if run.tokens_per_second else ""


def _left(run: Any) -> str:
    return "" if run.seconds_left is None else minutes(run.seconds_left)


def _evaluation(run: Any) -> str:
    if run.evaluation_step is None:
        return ""
    return f"{_loss(run.evaluation_loss) or 'not finite'} at {run.evaluation_step}"
