"""`posattn probe`: a recipe's encoder and decoder trained on a small task with a known answer."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from posattn.cli.app import (
    JsonOption,
    RecipeArgument,
    SetOption,
    again_with,
    app,
    continues_with,
    print_json,
)
from posattn.errors import RecipeError

if TYPE_CHECKING:
    from posattn.comparison.results_schema import Results


@app.command(
    epilog="Examples: posattn list probes | posattn probe offset rope | "
    "posattn probe twin_masks_hidden disentangled_emd --seeds 0,1,2 | "
    "posattn probe shift rope --set 'probe.offsets=[1, 64]' | posattn probe attention_distance runs/mine | "
    "posattn probe length rope --set train.steps=300 | "
    "posattn probe pointed disentangled --set encoder.num_layers=1 --set probe.reach=5 --json. "
    "Exit codes: 0 trained and measured (whether predictions held is in what is printed), 2 bad probe or "
    "recipe, 5 some runs did not finish, 130 interrupted."
)
def probe(
    name: Annotated[str, typer.Argument(metavar="NAME", help="A probe: see posattn list probes.")],
    recipe: RecipeArgument,
    overrides: SetOption,
    seeds: Annotated[
        str, typer.Option("--seeds", metavar="N,N", help="One run for each of these seeds.")
    ] = "0",
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            metavar="DIR",
            help="The folder to write to; by default runs/probes/NAME/RECIPE.",
            show_default=False,
        ),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Train a recipe's encoder and decoder on a probe; print accuracy, predictions, and what held.

    shift, permutation, padding and attention_distance train nothing: they look at the recipe's first
    weights, or at a run whose folder stands in place of the recipe. length and evidence_distance train the
    recipe on its own text, and show the loss beyond the trained length, or far from all evidence.

    --set also takes options of the probe, such as probe.steps=100. Running the same command again
    continues where it was stopped.
    """
    from posattn.comparison.evaluations.alone import alone_names

    if name in alone_names():
        from posattn.cli.probe_alone import probe_alone

        if out is not None or seeds != "0":
            raise RecipeError(f"'{name}' trains nothing, so it takes neither --seeds nor --out")
        probe_alone(name, recipe, overrides, as_json=as_json)
        return
    from posattn.cli.study_progress import study_progress
    from posattn.comparison.probe_study import probe_study, probe_summary
    from posattn.comparison.results import collect
    from posattn.comparison.run import run_study

    study = probe_study(name, recipe, _numbers(seeds), overrides)
    folder = out or Path("runs", "probes", name, study.baseline)
    words = ["--seeds", seeds, *(["--out", str(out)] if out else [])]
    again = again_with("probe", name, recipe, *words, overrides=overrides)
    with continues_with(again), study_progress() as draw:
        result = run_study(study, folder, progress=draw)
    results = collect(folder)
    if as_json:
        print_json({**probe_summary(results), "report": str(result.report.html)})
        return
    _draw(results, name)
    sys.stdout.write(f"Report: {result.report.html}\n")


def _numbers(text: str) -> list[int]:
    try:
        return [int(part) for part in text.split(",")]
    except ValueError:
        raise RecipeError(
            f"--seeds {text}: give whole numbers with commas, such as 0,1,2"
        ) from None


def _draw(results: "Results", name: str) -> None:
    """Print what the report's section on predictions holds, or that on an evaluation of text."""
    from rich import box
    from rich.console import Console
    from rich.table import Table as Grid
    from rich.text import Text as Words

    from posattn.comparison.probe_study import TEXT
    from posattn.comparison.report.figures import report_figures
    from posattn.comparison.report.sections import study_sections
    from posattn.figures.blocks import Table

    console = Console(file=sys.stdout)
    wanted = TEXT.get(name, "predictions")
    sections = study_sections(results, report_figures(results), "")
    for section in (section for section in sections if section.id == wanted):
        for block in section.blocks:
            if isinstance(block, Table):
                grid: Any = Grid(title=block.caption, box=box.SIMPLE_HEAD, title_justify="left")
                for column in block.columns:
                    grid.add_column(column.title, overflow="fold")
                for row in block.rows:
                    grid.add_row(*(Words(cell) for cell in row))
                console.print(grid)
            else:
                console.print(Words(getattr(block, "text", "")))
