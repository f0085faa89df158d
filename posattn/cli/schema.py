"""`posattn schema`: the JSON Schema of recipes, for editors."""

from posattn.cli.app import app, print_json


@app.command(
    epilog="Example: posattn schema > recipe.schema.json, and as the first line of a recipe: "
    "# yaml-language-server: $schema=recipe.schema.json"
)
def schema() -> None:
    """Print the JSON Schema of a recipe, with the options of every registered part, plug-ins too."""
    from posattn.recipe.schema import json_schema

    print_json(json_schema())
