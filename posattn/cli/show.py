"""`posattn show`: a recipe as it will run, or its architecture card."""

import sys
from typing import Annotated, Any

import typer

from posattn.cli.app import JsonOption, RecipeArgument, SetOption, app, print_json


@app.command(
    epilog="Examples: posattn show rope | posattn show quick/disentangled --card | "
    "posattn show full/deberta_base --card --json | posattn show rope --set encoder.num_layers=2"
)
def show(
    recipe: RecipeArgument,
    overrides: SetOption,
    card: Annotated[
        bool, typer.Option("--card", help="Print the architecture contract instead.")
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Print the resolved recipe, every default filled in, or with --card what it computes.

    The card says how positions enter, how they are clipped or bucketed, which terms are on, the
    scale, the decoder, the objective, parameters and FLOPs per token.
    """
    from posattn.recipe.schema import dump_recipe, load_recipe, recipe_data

    loaded = load_recipe(recipe, overrides)
    if card:
        from posattn.recipe.card import make_card

        contract = make_card(loaded)
        if as_json:
            print_json(contract)
        else:
            _draw(loaded.name, contract)
    elif as_json:
        print_json(recipe_data(loaded))
    else:
        sys.stdout.write(dump_recipe(loaded))


def _draw(name: str, card: dict[str, Any]) -> None:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(show_header=False, box=None, pad_edge=False)
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    for title, lines in card.items():
        table.add_row(Text(title, style="bold"), "")
        for key, value in lines.items():
            shown = f"{value:,}" if isinstance(value, int) else str(value)
            table.add_row(Text(f"  {key}"), Text(shown))
    console = Console(file=sys.stdout)
    console.print(Text(f"{name}: architecture contract", style="bold"))
    console.print(table)
