"""`posattn inspect`: what the attention of a model consists of, in a text."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from posattn.cli.app import JsonOption, SetOption, again_with, app, print_json, say
from posattn.errors import DataError, RecipeError

if TYPE_CHECKING:
    from posattn.decomposition import Inspection, Layer

HEADS = 4
"""Heads with heat maps on the page unless some are named."""


@app.command(
    "inspect",
    epilog="Examples: posattn inspect runs/mine --text poem.txt | "
    "posattn inspect quick/rope --text poem.txt --layer 2 --head 1 | "
    "posattn inspect runs/study/runs/rope/seed-0 --text poem.txt --out runs/inside | "
    "posattn inspect imported/v3 --text poem.txt --length 256 --json. "
    "Layers and heads count from 1; the passes of a mask decoder come after the layers.",
)
def inspect_command(
    model: Annotated[
        str,
        typer.Argument(
            metavar="MODEL",
            help="A recipe (its first weights), a run's folder, or a checkpoint's folder.",
        ),
    ],
    text: Annotated[Path, typer.Option("--text", metavar="FILE", help="The text to look at.")],
    overrides: SetOption,
    layers: Annotated[
        list[int],
        typer.Option(
            "--layer",
            min=1,
            metavar="N",
            default_factory=list,
            show_default=False,
            help="Show this layer only. Repeat for more.",
        ),
    ],
    heads: Annotated[
        list[int],
        typer.Option(
            "--head",
            min=1,
            metavar="N",
            default_factory=list,
            show_default=False,
            help="Show this head only, with heat maps. Repeat for more.",
        ),
    ],
    length: Annotated[
        int, typer.Option(min=2, metavar="N", help="How many tokens of the text are read.")
    ] = 128,
    out: Annotated[
        Path | None,
        typer.Option("--out", metavar="DIR", help="Write DIR/inspect.html and DIR/figures."),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Show the named terms of the attention logits: variance shares, profiles by distance, heat maps.

    Shares are of the variance of the logits over the keys of each query, and sum to 100 % in a head.
    """
    from posattn.checkpoints.opened import open_model
    from posattn.decomposition import Inspection, inspect

    opened = open_model(model, overrides)
    ids, tokens = opened.encode(_read(text), length)
    found = inspect(opened.model, ids, tokens)
    found = Inspection(found.tokens, _chosen(found, layers))
    most = max(layer.heads for layer in found.layers)
    if beyond := [head for head in heads if head > most]:
        raise RecipeError(f"there is no head {beyond[0]}; heads are 1 to {most}")
    if as_json:
        print_json(found.plain([head - 1 for head in heads] or None))
    else:
        from posattn.cli.inspection_text import draw

        draw(found, [head - 1 for head in heads])
    if out is not None:
        from posattn.decomposition.page import PageFacts, write_page

        named = [f"--layer={n}" for n in layers] + [f"--head={n}" for n in heads]
        command = again_with(
            *("inspect", model, "--text", str(text), "--length", str(length), *named),
            overrides=overrides,
        )
        shown = [head - 1 for head in heads] or list(range(min(HEADS, most)))
        if not heads and most > HEADS:
            say(f"Heat maps of {HEADS} of {most} heads; name others with --head")
        page = write_page(found, PageFacts(opened.recipe.name, opened.origin, command, shown), out)
        (say if as_json else lambda line: sys.stdout.write(f"{line}\n"))(f"Page: {page}")


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(f"the text {path} cannot be read: {error}") from error


def _chosen(found: "Inspection", layers: list[int]) -> "list[Layer]":
    if beyond := [layer for layer in layers if layer > len(found.layers)]:
        names = ", ".join(layer.name for layer in found.layers)
        raise RecipeError(
            f"there is no layer {beyond[0]}; there are {len(found.layers)}, in this order: {names}"
        )
    return [layer for number, layer in enumerate(found.layers, 1) if number in layers or not layers]
