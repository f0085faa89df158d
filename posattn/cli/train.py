"""`posattn train`: one run, from a recipe to a run folder."""

import sys
from typing import Annotated

import typer

from posattn.cli.app import (
    OutOption,
    RecipeArgument,
    SetOption,
    again_with,
    app,
    continues_with,
    say,
)
from posattn.errors import RunFailed


@app.command(
    epilog="Examples: posattn train rope --out runs/rope | posattn train rope --out runs/rope --resume | "
    "posattn train my.yaml --out runs/mine --set train.steps=100 --set encoder.num_layers=2. "
    "Exit codes: 0 the trained model is in DIR/final, 2 bad recipe, 3 data, 4 the run failed or diverged, "
    "130 interrupted."
)
def train(
    recipe: RecipeArgument,
    out: OutOption,
    overrides: SetOption,
    resume: Annotated[
        bool, typer.Option("--resume", help="Continue from the newest checkpoint in DIR.")
    ] = False,
) -> None:
    """Train the model of a recipe, saving checkpoints that --resume continues from, bit by bit.

    What cannot run here, such as a backend that refuses, is refused before text is fetched.
    """
    from posattn.recipe.schema import load_recipe

    loaded = load_recipe(recipe, overrides)
    from posattn.cli.progress import training_progress
    from posattn.recipe.check import check_recipe
    from posattn.recipe.run import train_recipe

    check_recipe(loaded, resumed=resume and out.exists())

    again = again_with("train", recipe, "--out", str(out), "--resume", overrides=overrides)
    with continues_with(again), training_progress(loaded.name) as draw:
        result = train_recipe(loaded, out, resume=resume, progress=draw)
    for note in result.notes:
        say(f"Note: {note}")
    if result.state != "finished":
        raise RunFailed(
            f"the run {result.state} at step {result.step}: {result.reason}; see {result.folder}"
        )
    sys.stdout.write(f"Finished {result.step} steps: {result.folder / 'final'}\n")
