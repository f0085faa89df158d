"""`posattn gallery`: what every mechanism looks like, from its real code."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from posattn.cli.app import app, say
from posattn.errors import RecipeError


@app.command(
    epilog="Examples: posattn gallery --out runs/gallery | posattn gallery --out runs/gallery --rounds 0 | "
    "posattn gallery --docs docs"
)
def gallery(
    out: Annotated[
        Path | None, typer.Option("--out", metavar="DIR", help="Write DIR/gallery.html.")
    ] = None,
    docs: Annotated[
        Path | None,
        typer.Option("--docs", metavar="DIR", help="Write DIR/gallery.md and DIR/gallery/*.svg."),
    ] = None,
    rounds: Annotated[int, typer.Option(min=0, help="Rounds of timing; 0 leaves time out.")] = 7,
) -> None:
    """Draw every registered mechanism, plug-ins too: pattern, effect of distance, cost, knowledge."""
    if out is None and docs is None:
        raise RecipeError(
            "say where the gallery goes: --out DIR for a page, --docs DIR for Markdown"
        )
    from posattn.gallery import make_gallery, write_html, write_markdown

    made = make_gallery(rounds, say)
    if out is not None:
        sys.stdout.write(f"Gallery: {write_html(made, out)}\n")
    if docs is not None:
        sys.stdout.write(f"Gallery: {write_markdown(made, docs)}\n")
