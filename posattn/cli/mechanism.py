"""`posattn new-mechanism` and `posattn check-mechanism`: the kit for authors of mechanisms."""

import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from posattn.cli.app import JsonOption, app, print_json
from posattn.errors import PluginError, PosattnError

NameArgument = Annotated[
    str, typer.Argument(metavar="NAME", help="The mechanism, as recipes name it.")
]


@app.command(
    epilog="Examples: posattn new-mechanism lean | posattn new-mechanism lean --out work/lean. "
    "Then: pip install -e posattn-lean, posattn check-mechanism lean."
)
def new_mechanism(
    name: NameArgument,
    out: Annotated[
        Path | None,
        typer.Option("--out", metavar="DIR", help="The new folder; by default ./posattn-NAME."),
    ] = None,
) -> None:
    """Write a small installable package: one mechanism that works, its test, recipe and README."""
    from posattn.kit import write_package

    for path in write_package(name, out):
        sys.stdout.write(f"{path}\n")


@app.command(
    epilog="Examples: posattn check-mechanism alibi | posattn check-mechanism alibi --set variant=halves | "
    "posattn check-mechanism lean --json. "
    "Exit codes: 0 every check passed, 1 a check failed or the plug-in was refused, 2 bad name or options."
)
def check_mechanism(
    name: NameArgument,
    options: Annotated[
        list[str],
        typer.Option(
            "--set",
            metavar="OPTION=VALUE",
            help="Set an option of the mechanism. Repeat for more.",
            default_factory=list,
            show_default=False,
        ),
    ],
    hidden_size: Annotated[int, typer.Option(min=1, help="Width of the small encoder.")] = 32,
    num_heads: Annotated[int, typer.Option(min=1, help="Heads of the small encoder.")] = 4,
    as_json: JsonOption = False,
) -> None:
    """Run the conformance suite on a mechanism, built-in or plug-in, and say what each failure means."""
    size = {"hidden_size": hidden_size, "num_heads": num_heads}
    rows = _results(name, options, size)
    failed = sum(not row["passed"] for row in rows)
    if as_json:
        shown = {"mechanism": name, "options": options, "passed": not failed, "checks": rows}
        print_json(shown)
    else:
        _draw(name, rows)
        sys.stdout.write(f"{name}: {len(rows) - failed} of {len(rows)} checks passed\n")
    raise typer.Exit(1 if failed else 0)


def _results(name: str, options: list[str], size: dict[str, int]) -> list[dict[str, Any]]:
    from posattn.encoder.config import EncoderConfig
    from posattn.mechanisms import registry
    from posattn.recipe.explain import validate_document
    from posattn.recipe.merge import Override, merge, override, parse_override
    from posattn.recipe.reader import Origin
    from posattn.testing import mechanism_checks

    try:
        registry.get(name)
    except PluginError as error:
        raise PosattnError(str(error)) from error
    document = override("mechanism.name", name, Origin("NAME")).document()
    for text in options:
        said = parse_override(text)
        option = Override(("mechanism", *said.path), said.value, said.origin)
        document = merge(document, option.document())
    given = dict(document.data["mechanism"])
    encoder = {**document.data, **size}
    validate_document(EncoderConfig, type(document)(encoder, document.origins), what="mechanism")
    del given["name"]
    return [
        {
            "check": check.name,
            "passed": not (problem := check.problem()),
            "problem": problem,
            "promise": check.about,
            "failure_means": check.failure_means,
        }
        for check in mechanism_checks(name, given, **size)
    ]


def _draw(name: str, rows: list[dict[str, Any]]) -> None:
    from rich import box
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("check", overflow="fold", ratio=4)
    table.add_column("result", no_wrap=True, width=6)
    table.add_column("what a failure means", overflow="fold", ratio=6)
    for row in rows:
        result = Text("passed", "green") if row["passed"] else Text("FAILED", "bold red")
        means = Text(row["failure_means"], "dim" if row["passed"] else "")
        if not row["passed"]:
            means.append(f"\n{row['problem']}", "bold")
        table.add_row(Text(row["check"].replace("_", " ")), result, means)
    Console(file=sys.stdout).print(table)
