"""`posattn bench`: encoders timed on this machine, beside what other libraries are installed."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from posattn.cli.app import JsonOption, app, print_json, say
from posattn.cli.bench_plan import Shapes, changed_plan

if TYPE_CHECKING:
    from posattn.bench import BenchPlan, BenchResult

DEFAULT_OUT = Path("runs/bench")

Preset = Annotated[
    str, typer.Option(help="What to start from: quick, cpu-targets, cpu-plain, cpu-bf16, unpad.")
]
Subjects = Annotated[
    list[str] | None,
    typer.Option(help="A mechanism, or an architecture with rivals. Repeat for more."),
]
Lengths = Annotated[list[int] | None, typer.Option(help="Tokens. Repeat for more.")]
Batches = Annotated[list[int] | None, typer.Option(help="Sequences. Repeat for more.")]
MixedLengths = Annotated[
    bool | None,
    typer.Option("--mixed/--full", help="Texts of 4 to LENGTH tokens, padded and without padding."),
]
Stages = Annotated[list[str] | None, typer.Option(help="inference or training. Repeat for both.")]
Backends = Annotated[list[str] | None, typer.Option(help="Of ours. Repeat for more.")]
Precisions = Annotated[
    list[str] | None, typer.Option(help="float32, bf16 or float16. Repeat for more.")
]
Layers = Annotated[int | None, typer.Option(help="Layers of the encoders.")]
Width = Annotated[int | None, typer.Option(help="hidden_size, in heads of 64.")]
Rounds = Annotated[int | None, typer.Option(help="At least so many rounds.")]
Seconds = Annotated[float | None, typer.Option(help="At least so long for each input.")]
Memory = Annotated[
    str | None, typer.Option(help="Peak memory of which inputs: none, largest or all.")
]
Threads = Annotated[int | None, typer.Option(help="torch threads.")]
Device = Annotated[str | None, typer.Option(help="cpu or cuda.")]
Compiled = Annotated[
    bool | None, typer.Option("--compile/--no-compile", help="Ours compiled, as well.")
]
Rivals = Annotated[
    bool | None, typer.Option("--rivals/--no-rivals", help="Other libraries, if installed.")
]
Folder = Annotated[Path, typer.Option(metavar="DIR", help="The folder of bench.json and figures.")]
Made = Annotated[
    list[Path] | None,
    typer.Option(
        "--from", metavar="DIR", help="Measure nothing: read DIR/bench.json. Repeat for more."
    ),
]
Docs = Annotated[Path | None, typer.Option(metavar="DIR", help="Write DIR/performance.md as well.")]


@app.command(
    epilog="Examples: posattn bench | posattn bench --mechanism rope --length 512 --length 2048 --batch 1 | "
    "posattn bench --mixed --mechanism t5 --batch 32 --length 128 | "
    "posattn bench --preset cpu-targets --threads 2 --out runs/cpu | "
    "posattn bench --from runs/cpu --from runs/unpad --docs docs"
)
def bench(
    preset: Preset = "quick",
    mechanism: Subjects = None,
    length: Lengths = None,
    batch: Batches = None,
    mixed: MixedLengths = None,
    stage: Stages = None,
    backend: Backends = None,
    precision: Precisions = None,
    layers: Layers = None,
    width: Width = None,
    rounds: Rounds = None,
    seconds: Seconds = None,
    memory: Memory = None,
    threads: Threads = None,
    device: Device = None,
    compiled: Compiled = None,
    rivals: Rivals = None,
    out: Folder = DEFAULT_OUT,
    made: Made = None,
    docs: Docs = None,
    as_json: JsonOption = False,
) -> None:
    """Time ours and what of transformers, x-transformers, disentangled-flash, flashdeberta is installed.

    Same weights, same function, checked before anything is timed; all in turn in every round; medians
    with quartiles, first calls apart, peak memory in processes of their own. Ctrl-C keeps what is there.
    """
    if made:
        _show(_read(made), docs, as_json)
        return
    given = {
        "subjects": mechanism,
        "backends": backend,
        "precisions": precision,
        "rounds": rounds,
        "seconds": seconds,
        "memory": memory,
        "threads": threads,
        "device": device,
        "compiled": compiled,
        "rivals": rivals,
    }
    shapes = Shapes(length, batch, stage, mixed)
    result = _measure(changed_plan(preset, given, shapes, layers=layers, width=width), out)
    _show([result], docs, as_json)
    if result.interrupted:
        say(f"Interrupted; what was measured until then is in {out}")
        raise typer.Exit(130)


def _read(made: list[Path]) -> "list[BenchResult]":
    from posattn.bench import load_result

    return [load_result(path) for path in made]


def _show(results: "list[BenchResult]", docs: Path | None, as_json: bool) -> None:
    """Print every result, and write the page if there is a folder for it."""
    from posattn.bench import write_page

    for result in results:
        if as_json:
            print_json(result.model_dump(mode="json"))
        else:
            _draw(result)
    if docs is not None:
        say(f"Page: {write_page(results, docs)}")


def _measure(plan: "BenchPlan", out: Path) -> "BenchResult":
    from rich.console import Console

    from posattn.bench import run_bench, write_figures

    console = Console(stderr=True)
    with console.status("starting") as status:
        result = run_bench(plan, out, status.update)
    write_figures(result, out)
    say(f"Result: {out / 'bench.json'}")
    return result


def _draw(result: "BenchResult") -> None:
    from rich import box
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    from posattn.bench.tables import case_tables, target_table

    console = Console(file=sys.stdout)
    targets = target_table(result)
    for block in [*case_tables(result.cases), *([targets] if targets else [])]:
        table = Table(title=block.caption, caption=block.note, box=box.SIMPLE_HEAD, pad_edge=False)
        for number, column in enumerate(block.columns):
            cells = [row[number] for row in block.rows]
            whole = cells if column.numeric else [word for cell in cells for word in cell.split()]
            table.add_column(  # where the terminal is narrow, words wrap and numbers stay whole
                column.title,
                justify="right" if column.numeric else "left",
                min_width=max(map(len, whole), default=0),
            )
        for row in block.rows:
            table.add_row(*map(Text, row))
        console.print(table)
