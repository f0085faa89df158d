"""`posattn probe` for evaluations that need no training: of a recipe's model, or of a run that has ended."""

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from posattn.cli.app import print_json
from posattn.errors import RecipeError

OPTION = "probe."


def probe_alone(name: str, model: str, overrides: list[str], *, as_json: bool) -> None:
    """Print what the evaluation `name` says; `probe.KEY=VALUE` among the overrides are its options."""
    from posattn.comparison.evaluations.alone import measure_run, measure_untrained
    from posattn.recipe.schema import load_recipe

    own, others = _options(overrides)
    if Path(model).is_dir():
        if others:
            raise RecipeError(f"a run keeps its recipe; --set takes {OPTION}KEY=VALUE only for it")
        found, about = measure_run(name, Path(model), own), f"the run in {model}"
    else:
        recipe = load_recipe(model, others)
        found, about = measure_untrained(name, recipe, own), f"{recipe.name}, first weights"
    if as_json:
        print_json(found)
        return
    _draw(f"{name} of {about}", found)


def _options(overrides: Sequence[str]) -> tuple[dict[str, Any], list[str]]:
    """Return the options of the evaluation, and the overrides of the recipe."""
    from posattn.recipe.merge import read_overrides

    own = [item for item in overrides if item.startswith(OPTION)]
    options: dict[str, Any] = {}
    for item in read_overrides(own):
        options |= item.document().data["probe"]
    return options, [item for item in overrides if not item.startswith(OPTION)]


def _draw(title: str, found: Mapping[str, Any]) -> None:
    from rich import box
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    console = Console(file=sys.stdout)
    console.print(Text(title, style="bold"))
    if found.get("reason"):
        console.print(Text(f"not measured: {found['reason']}"))
        return
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    header, rows = _checks(found["checks"]) if "checks" in found else _layers(found["layers"])
    for column in header:
        table.add_column(column, overflow="fold")
    for row in rows:
        table.add_row(*(Text(cell) for cell in row))
    console.print(table)


def _checks(checks: Sequence[Mapping[str, Any]]) -> tuple[list[str], list[list[str]]]:
    rows = []
    for check in checks:
        amount = "" if check["amount"] is None else f" {check['amount']}"
        held = {True: "held", False: "NOT HELD", None: "not judged alone"}[check["held"]]
        must = "stay" if check["same"] else "change"
        change = f"{check['relative']:.1e}" if check["relative"] else "0"
        rows.append([f"{check['name']}{amount}", must, change, held, check["because"]])
    return ["check", "must", "change", "held", "because"], rows


def _layers(layers: Sequence[Mapping[str, Any]]) -> tuple[list[str], list[list[str]]]:
    keys = ("distance", "uniform_distance", "entropy", "uniform_entropy", "first", "last", "cls")
    rows = [
        [layer["name"], str(head + 1), *(_number(layer[key][head]) for key in keys)]
        for layer in layers
        for head in range(len(layer["distance"]))
    ]
    titles = ("distance", "even", "entropy", "even", "first", "last", "cls")
    return ["layer", "head", *titles], rows


def _number(value: float | None) -> str:
    return "\u2013" if value is None else f"{value:.3f}"
