"""`posattn watch`: what a study is doing, seen from another terminal."""

import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from posattn.cli.app import JsonOption, app, print_json

if TYPE_CHECKING:
    from posattn.comparison.watching import Snapshot, Watcher


@app.command(
    epilog="Examples: posattn watch runs/quick | posattn watch runs/quick/runs/rope/seed-0 --every 0.5 | "
    "posattn watch runs/quick --json. It reads files only, so that it can neither disturb a run nor "
    "need one that is alive. Ctrl-C leaves it; the runs go on."
)
def watch(
    folder: Annotated[
        Path,
        typer.Argument(
            metavar="DIR", help="The folder of a study, of a suite, of tuning, or of one run."
        ),
    ],
    once: Annotated[bool, typer.Option("--once", help="Print the state once and end.")] = False,
    as_json: JsonOption = False,
    every: Annotated[
        float, typer.Option("--every", min=0.1, metavar="SECONDS", help="Time between two looks.")
    ] = 2.0,
) -> None:
    """Show the runs of a folder while they train, or after: step, loss, speed, time left.

    Waits for a folder that is not there yet, and ends when every run has ended and the report lies
    there. --json prints one state for other programs and ends.
    """
    from posattn.comparison.watching import Watcher

    watcher = Watcher(folder)
    if as_json:
        print_json(watcher.look().to_json())
        return
    if once:
        _print_table(watcher.look())
        return
    try:
        last = _live(watcher, every) if sys.stdout.isatty() else _lines(watcher, every)
    except KeyboardInterrupt:
        last = watcher.look()
    _print_table(last)


def _live(watcher: "Watcher", every: float) -> "Snapshot":
    """Redraw the whole screen, as large as it is at that moment, until everything has ended."""
    from rich.console import Console
    from rich.live import Live

    from posattn.cli.watch_table import view

    console = Console()
    with Live(console=console, screen=True, auto_refresh=False) as live:
        while True:
            snapshot = watcher.look()
            live.update(view(snapshot, console.width, console.height), refresh=True)
            if _is_over(snapshot):
                return snapshot
            time.sleep(every)


def _lines(watcher: "Watcher", every: float) -> "Snapshot":
    """Print a line whenever the counts of states change, where nothing can be redrawn."""
    from posattn.cli.watch_table import headline

    shown: object = None
    while True:
        snapshot = watcher.look()
        now = (snapshot.waiting_for, snapshot.counts, snapshot.reports)
        if now != shown:
            shown = now
            sys.stdout.write(f"{headline(snapshot)}\n")
            sys.stdout.flush()
        if _is_over(snapshot):
            return snapshot
        time.sleep(every)


def _is_over(snapshot: "Snapshot") -> bool:
    """Return whether nothing more will come: all runs ended, and the report of a study is there."""
    in_study = any(run.seed is not None for run in snapshot.runs)
    return snapshot.ended and (bool(snapshot.reports) or not in_study)


def _print_table(snapshot: "Snapshot") -> None:
    from rich.console import Console

    from posattn.cli.watch_table import view

    console = Console()
    console.print(view(snapshot, console.width))
