"""`posattn diff`: where two resolved recipes differ."""

import json
import sys
from typing import Annotated, Any

import typer

from posattn.cli.app import JsonOption, app, print_json


@app.command(
    epilog="Examples: posattn diff rope alibi | posattn diff rope my/recipe.yaml --json. "
    "Exit codes as in diff(1): 0 the recipes are the same, 1 they differ, 2 trouble."
)
def diff(
    first: Annotated[str, typer.Argument(metavar="A", help="A recipe file or shipped name.")],
    second: Annotated[str, typer.Argument(metavar="B", help="Another one.")],
    as_json: JsonOption = False,
) -> None:
    """Print where two resolved recipes differ, by dotted path; names and descriptions do not count."""
    from posattn.recipe.difference import ABSENT, differences
    from posattn.recipe.schema import load_recipe

    found = differences(load_recipe(first), load_recipe(second))
    if as_json:
        print_json(
            {
                path: {
                    side: value
                    for side, value in zip("ab", pair, strict=True)
                    if value is not ABSENT
                }
                for path, pair in found.items()
            }
        )
    for path, (left, right) in found.items() if not as_json else ():
        shown = [_show(value, ABSENT) for value in (left, right)]
        sys.stdout.write(f"{path}: {shown[0]} -> {shown[1]}\n")
    raise typer.Exit(1 if found else 0)


def _show(value: Any, absent: object) -> str:
    return "(absent)" if value is absent else json.dumps(value, ensure_ascii=False)
