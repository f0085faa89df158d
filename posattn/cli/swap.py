"""`posattn swap`: a trained model with another mechanism."""

import sys
from typing import Annotated

import typer

from posattn.cli.app import JsonOption, OutOption, SetOption, app, print_json


@app.command(
    epilog="Examples: posattn swap imported/bert --set encoder.mechanism.name=rope --out swapped/rope | "
    "posattn swap imported/bert --set encoder.mechanism=t5 --start-from-old --out swapped/t5 | "
    "posattn swap runs/mine/final --set encoder.mechanism.buckets.max_distance=1024 --start-from-old "
    "--out swapped/longer. Then: posattn train swapped/rope/recipe.yaml --out runs/rope. "
    "Exit codes: 0 DIR is written, 2 bad options, 4 nothing fits.",
)
def swap(
    source: Annotated[
        str, typer.Argument(metavar="SOURCE", help="What posattn import takes, or wrote, or a run.")
    ],
    out: OutOption,
    overrides: SetOption,
    start_from_old: Annotated[
        bool,
        typer.Option(
            "--start-from-old", help="Start the new mechanism from the old one's weights."
        ),
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Keep all weights that the changed recipe has too, start the others anew, and say which."""
    from posattn.checkpoints.swap import swap_checkpoint

    done = swap_checkpoint(source, out, overrides, from_old=start_from_old)
    if as_json:
        print_json(done.record())
        return
    for title, names in (
        ("left out", done.dropped),
        ("new", done.new),
        ("started from the old mechanism", done.started),
    ):
        for name in names:
            sys.stdout.write(f"{title}: {name}\n")
    if done.how:
        sys.stdout.write(f"{done.how}\n")
    sys.stdout.write(f"{done.summary()}\nSwapped: {out}\n")
