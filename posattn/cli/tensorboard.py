"""`posattn tensorboard`: what runs have logged, as event files."""

import sys
import time
from pathlib import Path
from typing import Annotated

import typer

from posattn.cli.app import app, say
from posattn.errors import RecipeError


@app.command(
    epilog="Examples: posattn tensorboard runs/quick && tensorboard --logdir runs/quick/tensorboard | "
    "posattn tensorboard runs/quick --follow. Needs: pip install 'posattn[tensorboard]'. It reads "
    "metrics.jsonl, so it works for runs of any age and cannot change one."
)
def tensorboard(
    folder: Annotated[
        Path,
        typer.Argument(
            metavar="DIR", help="The folder of a study, of a suite, of tuning, or of one run."
        ),
    ],
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            metavar="LOGDIR",
            help="Where the event files go, a folder for each run.",
            show_default="DIR/tensorboard",
        ),
    ] = None,
    follow: Annotated[
        bool, typer.Option("--follow", help="Go on while the runs train, until all have ended.")
    ] = False,
    every: Annotated[
        float, typer.Option("--every", min=0.1, metavar="SECONDS", help="Time between two looks.")
    ] = 5.0,
) -> None:
    """Write every number that runs have logged as event files for TensorBoard.

    A further call replaces the event files of the one before.
    """
    from posattn.comparison.event_files import EventExport
    from posattn.comparison.watching import Watcher

    logs = out or folder / "tensorboard"
    export = EventExport(folder, logs)
    written = export.export()
    if follow:
        watcher = Watcher(folder)
        say(f"Following {folder}; Ctrl-C ends it, the runs go on. See: tensorboard --logdir {logs}")
        try:
            while not watcher.look().ended:
                time.sleep(every)
                written += export.export()
        except KeyboardInterrupt:
            say("Stopped following.")
        written += export.export()
    export.close()
    if not export.runs and not follow:
        raise RecipeError(
            f"{folder} holds no run with a metrics.jsonl; give the --out folder of a comparison or "
            "of a training, or --follow to wait for one"
        )
    if export.damaged:
        say(f"{export.damaged} lines of metrics.jsonl are damaged and left out.")
    counted = f"{written} values of {export.runs} run{'' if export.runs == 1 else 's'}"
    sys.stdout.write(f"{counted} in {logs}; see them with: tensorboard --logdir {logs}\n")
