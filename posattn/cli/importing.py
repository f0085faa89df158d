"""`posattn import`: a checkpoint of another library as a folder that training takes."""

import sys
from typing import TYPE_CHECKING, Annotated

import typer

from posattn.cli.app import JsonOption, OutOption, SetOption, app, print_json, say

if TYPE_CHECKING:
    from posattn.checkpoints.report import ImportReport


@app.command(
    "import",
    epilog="Examples: posattn import models/bert --out imported/bert | "
    "posattn import models/deberta-v3 --out imported/v3 --accept-unused 'mask_predictions.*' | "
    "posattn import models/minilm --out imported/minilm --json. "
    "Then: posattn train imported/bert/recipe.yaml --out runs/more. "
    "Exit codes: 0 DIR is written, 2 bad options, 4 the checkpoint was refused and nothing is written.",
)
def import_command(
    source: Annotated[
        str,
        typer.Argument(
            metavar="SOURCE", help="A folder with config.json and weights, or a name on the hub."
        ),
    ],
    out: OutOption,
    overrides: SetOption,
    accept_unused: Annotated[
        list[str],
        typer.Option(
            "--accept-unused",
            metavar="GLOB",
            help="Leave out stored tensors of these names. Repeat for more.",
            default_factory=list,
            show_default=False,
        ),
    ],
    accept_new: Annotated[
        list[str],
        typer.Option(
            "--accept-new",
            metavar="GLOB",
            help="Start parameters of these names anew. Repeat for more.",
            default_factory=list,
            show_default=False,
        ),
    ],
    as_json: JsonOption = False,
) -> None:
    """Read a checkpoint, account for every tensor, and write recipe, weights, tokenizer and report."""
    from posattn.checkpoints.loading import import_checkpoint

    report = import_checkpoint(
        source, out, overrides=overrides, accept_unused=accept_unused, accept_new=accept_new
    )
    if as_json:
        print_json(report.record())
        return
    _draw(report)
    for note in report.notes:
        say(f"Note: {note}")
    sys.stdout.write(f"{report.summary()}\nImported: {out}\n")


def _draw(report: "ImportReport") -> None:
    from rich import box
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    heads = [*(["masked tokens"] if report.has_masked_token_head else []), *report.tasks]
    title = f"{report.source}: {report.family}, heads: {', '.join(heads) or 'none'}"
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("stored as", overflow="fold")
    table.add_column("here", overflow="fold")
    table.add_column("what became of it", overflow="fold")
    table.add_column("tensors", justify="right")
    for row in report.rows():
        table.add_row(*(Text(cell) for cell in row))
    console = Console(file=sys.stdout)
    console.print(Text(title, style="bold"))
    console.print(table)
