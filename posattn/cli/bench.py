"""`posattn bench`: encoders timed on this machine, beside what other libraries are installed."""

import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from posattn.cli.app import JsonOption, app, print_json, say
from posattn.errors import RecipeError

if TYPE_CHECKING:
    from posattn.bench import BenchPlan, BenchResult

DEFAULT_OUT = Path("runs/bench")


@app.command(
    epilog="Examples: posattn bench | posattn bench --mechanism rope --length 512 --length 2048 --batch 1 | "
    "posattn bench --preset cpu-targets --threads 2 --out runs/cpu | "
    "posattn bench --from runs/cpu --docs docs"
)
def bench(
    preset: Annotated[
        str, typer.Option(help="What to start from: quick, cpu-targets, cpu-plain.")
    ] = "quick",
    mechanism: Annotated[
        list[str] | None,
        typer.Option(help="A mechanism, or an architecture with rivals. Repeat for more."),
    ] = None,
    length: Annotated[list[int] | None, typer.Option(help="Tokens. Repeat for more.")] = None,
    batch: Annotated[list[int] | None, typer.Option(help="Sequences. Repeat for more.")] = None,
    stage: Annotated[
        list[str] | None, typer.Option(help="inference or training. Repeat for both.")
    ] = None,
    backend: Annotated[list[str] | None, typer.Option(help="Of ours. Repeat for more.")] = None,
    precision: Annotated[
        list[str] | None, typer.Option(help="float32, bf16 or float16. Repeat for more.")
    ] = None,
    layers: Annotated[int | None, typer.Option(help="Layers of the encoders.")] = None,
    width: Annotated[int | None, typer.Option(help="hidden_size, in heads of 64.")] = None,
    rounds: Annotated[int | None, typer.Option(help="At least so many rounds.")] = None,
    seconds: Annotated[float | None, typer.Option(help="At least so long for each input.")] = None,
    memory: Annotated[
        str | None, typer.Option(help="Peak memory of which inputs: none, largest or all.")
    ] = None,
    threads: Annotated[int | None, typer.Option(help="torch threads.")] = None,
    device: Annotated[str | None, typer.Option(help="cpu or cuda.")] = None,
    compiled: Annotated[
        bool | None, typer.Option("--compile/--no-compile", help="Ours compiled, as well.")
    ] = None,
    rivals: Annotated[
        bool | None, typer.Option("--rivals/--no-rivals", help="Other libraries, if installed.")
    ] = None,
    out: Annotated[
        Path, typer.Option(metavar="DIR", help="The folder of bench.json and figures.")
    ] = DEFAULT_OUT,
    made: Annotated[
        list[Path] | None,
        typer.Option("--from", metavar="DIR", help="Measure nothing: read DIR/bench.json."),
    ] = None,
    docs: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Write DIR/performance.md as well.")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Time ours and what of transformers, x-transformers, disentangled-flash, flashdeberta is installed.

    Same weights, same function, checked before anything is timed; all in turn in every round; medians
    with quartiles, first calls apart, peak memory in processes of their own. Ctrl-C keeps what is there.
    """
    from posattn.bench import load_result, write_page

    if made:
        results = [load_result(path) for path in made]
    else:
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
        shape = {"length": length, "batch": batch, "stage": stage}
        size = {"layers": layers, "width": width}
        plan = _plan(preset, given, shape, size)
        results = [_measure(plan, out)]
    for result in results:
        if as_json:
            print_json(result.model_dump(mode="json"))
        else:
            _draw(result)
    if docs is not None:
        say(f"Page: {write_page(results, docs)}")
    if any(result.interrupted for result in results) and not made:
        say(f"Interrupted; what was measured until then is in {out}")
        raise typer.Exit(130)


def _measure(plan: "BenchPlan", out: Path) -> "BenchResult":
    from rich.console import Console

    from posattn.bench import run_bench, write_figures

    console = Console(stderr=True)
    with console.status("starting") as status:
        result = run_bench(plan, out, status.update)
    write_figures(result, out)
    say(f"Result: {out / 'bench.json'}")
    return result


def _plan(
    preset: str,
    given: dict[str, Any],
    shape: dict[str, list[Any] | None],
    size: dict[str, int | None],
) -> "BenchPlan":
    """Return the preset with what the command line says in its place."""
    from pydantic import ValidationError

    from posattn.bench import BenchPlan, presets

    plan = presets.get(preset)()
    command = _command(preset, {**given, **shape, **size})
    data = plan.model_dump(mode="json")
    changes = {key: value for key, value in given.items() if value not in (None, [])}
    if any(shape.values()):
        changes["cells"] = _cells(data["cells"], **shape)
    layers, width = size["layers"], size["width"]
    if layers is not None:
        changes["size"] = {**data["size"], "num_layers": layers}
    if width is not None:
        heads = {"num_heads": max(1, width // 64), "intermediate_size": 4 * width}
        changes["size"] = {**changes.get("size", data["size"]), "hidden_size": width, **heads}
    if changes.keys() - {"threads"}:
        changes["name"] = f"{preset}-custom"
    try:
        return BenchPlan.model_validate({**data, **changes, "command": command})
    except ValidationError as error:
        faults = "; ".join(
            f"{'.'.join(map(str, fault['loc']))}: {fault['msg']} (given: {fault['input']!r})"
            for fault in error.errors()
        )
        raise RecipeError(f"this cannot be measured: {faults}") from error


def _command(preset: str, given: dict[str, Any]) -> str:
    """Return the command line that measures the same."""
    named = {"subjects": "mechanism", "backends": "backend", "precisions": "precision"}
    words = ["posattn", "bench", "--preset", preset]
    for key, value in given.items():
        option = named.get(key, key)
        if key == "compiled" and value is not None:
            words.append("--compile" if value else "--no-compile")
        elif key == "rivals" and value is not None:
            words.append("--rivals" if value else "--no-rivals")
        elif value is not None:
            for one in value if isinstance(value, list) else [value]:
                words += [f"--{option}", str(one)]
    return shlex.join(words)


def _cells(
    cells: list[dict[str, Any]],
    length: list[Any] | None,
    batch: list[Any] | None,
    stage: list[Any] | None,
) -> list[dict[str, Any]]:
    """Return all combinations; what is not given is as in the cells."""

    def known(key: str) -> list[Any]:
        return list(dict.fromkeys(cell[key] for cell in cells))

    return [
        {"batch_size": rows, "length": tokens, "stage": what}
        for what in stage or known("stage")
        for tokens in length or known("length")
        for rows in batch or known("batch_size")
    ]


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
        for column in block.columns:
            table.add_column(
                column.title, justify="right" if column.numeric else "left", no_wrap=True
            )
        for row in block.rows:
            table.add_row(*map(Text, row))
        console.print(table)
