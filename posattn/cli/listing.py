"""`posattn list`: what a recipe can name."""

import inspect
import sys
from enum import StrEnum
from importlib import import_module
from typing import Annotated, Any

import typer

from posattn.cli.app import JsonOption, app, print_json


class Kind(StrEnum):
    """What can be listed."""

    MECHANISMS = "mechanisms"
    BACKENDS = "backends"
    DECODERS = "decoders"
    RECIPES = "recipes"
    STUDIES = "studies"
    CORPORA = "corpora"
    TOKENIZERS = "tokenizers"
    OBJECTIVES = "objectives"
    TASKS = "tasks"
    FAMILIES = "families"
    EVALUATIONS = "evaluations"
    PROBES = "probes"


_REGISTRIES = {
    Kind.MECHANISMS: ("posattn.mechanisms", "registry"),
    Kind.BACKENDS: ("posattn.backends", "registry"),
    Kind.DECODERS: ("posattn.encoder.model", "decoders"),
    Kind.CORPORA: ("posattn.training.text.corpora", "corpora"),
    Kind.TOKENIZERS: ("posattn.training.text.tokenizers", "tokenizers"),
    Kind.OBJECTIVES: ("posattn.training.objectives", "objectives"),
    Kind.TASKS: ("posattn.encoder.tasks", "tasks"),
    Kind.FAMILIES: ("posattn.checkpoints.families", "families"),
    Kind.PROBES: ("posattn.comparison.probes", "probes"),
    Kind.EVALUATIONS: ("posattn.comparison.evaluations", "evaluations"),
}


@app.command(
    "list",
    epilog="Examples: posattn list mechanisms | posattn list recipes | "
    "posattn list backends --json",
)
def list_command(
    kind: Annotated[Kind, typer.Argument(help="What to list.")], as_json: JsonOption = False
) -> None:
    """List what ships with posattn and what plug-ins add, by the names that recipes use."""
    rows = _files(kind) if kind in (Kind.RECIPES, Kind.STUDIES) else _entries(*_REGISTRIES[kind])
    answers = _answers(rows) if kind is Kind.BACKENDS else []
    if as_json:
        print_json(rows)
        return
    _draw(rows, str(kind))
    if answers:
        from posattn.cli.doctor import draw_matrix

        draw_matrix(answers)
        sys.stdout.write("This is about float32; posattn doctor asks about every dtype.\n")


def _answers(rows: list[dict[str, Any]]) -> list[Any]:
    """Ask every backend about every mechanism in float32, and add the answers to the rows."""
    from posattn.recipe.capability import ask_backends

    answers = ask_backends(dtypes=("float32",))
    for row in rows:
        refused: dict[str, list[str]] = {}
        for answer in answers:
            if answer.backend == row["name"]:
                reasons = refused.setdefault(answer.mechanism, [])
                reasons += [reason for reason in answer.reasons if reason not in reasons]
        row["refuses"] = {name: reasons for name, reasons in refused.items() if reasons}
    return answers


def _entries(module: str, attribute: str) -> list[dict[str, Any]]:
    registry = getattr(import_module(module), attribute)
    plugins = registry.plugins()
    usable = {name for name, plugin in plugins.items() if not plugin.problem}
    rows = [
        {
            "name": name,
            "summary": _summary(name, registry.get(name)),
            "options": _options(registry.get(name)),
            "from": plugins[name].distribution if name in usable else "posattn",
        }
        for name in registry.names()
    ]
    broken = [
        {"name": plugin.name, "from": plugin.distribution, "problem": plugin.problem}
        for plugin in plugins.values()
        if plugin.problem
    ]
    return rows + broken


def _summary(name: str, entry: Any) -> str:
    """Return the sentence of the entry's module if it is about this entry, else of its class."""
    module = inspect.getdoc(sys.modules.get(entry.__module__)) or ""
    title = f"`{name}`: "
    text = module.removeprefix(title) if module.startswith(title) else inspect.getdoc(entry) or ""
    return " ".join(text.split("\n\n")[0].split()).removesuffix(".")


def _options(entry: Any) -> dict[str, Any]:
    from posattn.recipe.writer import plain_default

    config = getattr(entry, "Config", None)
    fields = config.model_fields if config is not None else {}
    return {key: plain_default(field) for key, field in fields.items() if key != "name"}


def _files(kind: Kind) -> list[dict[str, Any]]:
    from posattn.recipe.reader import read_file
    from posattn.recipe.shipped import shipped_names

    names = shipped_names("study" if kind is Kind.STUDIES else "recipe")
    rows = []
    for name, path in names.items():
        data = read_file(path).data
        rows.append({"name": name, "summary": data.get("description", ""), "path": str(path)})
    return rows


def _draw(rows: list[dict[str, Any]], title: str) -> None:
    from rich import box
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column(title, no_wrap=True, style="bold")
    table.add_column("what it is", overflow="fold")
    if rows and "options" in rows[0]:
        table.add_column("options", overflow="fold")
    for row in rows:
        cells = [row["name"], row.get("summary", "")]
        if "problem" in row:
            cells[1] = f"cannot be used (package {row['from']}): {row['problem']}"
        elif row.get("from", "posattn") != "posattn":
            cells[1] = f"{row['summary']} (package {row['from']})"
        if "options" in row:
            cells.append(", ".join(row["options"]) or "none")
        table.add_row(*(Text(cell) for cell in cells))
    Console(file=sys.stdout).print(table)
