"""`posattn export`: a trained or imported model as a folder for Hugging Face."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from posattn.cli.app import JsonOption, app, print_json, say


@app.command(
    epilog="Examples: posattn export runs/mine --hf exported/mine | "
    "posattn export out/runs/rope/seed-0 --hf exported/rope | "
    "posattn export runs/emd --hf exported/encoder --encoder-only. "
    "Exit codes: 0 DIR is written, 2 bad options, 4 there is no finished model, or it was not equal.",
)
def export(
    run: Annotated[
        Path,
        typer.Argument(metavar="RUN", help="A run's folder, or one that posattn import wrote."),
    ],
    hf: Annotated[
        Path, typer.Option("--hf", metavar="DIR", help="The folder to write for Hugging Face.")
    ],
    encoder_only: Annotated[
        bool, typer.Option("--encoder-only", help="Leave the decoder and all heads behind.")
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Write model, tokenizer and model card as AutoModel.from_pretrained loads them."""
    from posattn.checkpoints.export import export_run

    done = export_run(run, hf, encoder_only=encoder_only)
    if as_json:
        print_json(done.record())
        return
    for reason in done.reasons:
        say(f"No class of transformers computes this model; {reason}")
    for note in done.notes:
        say(f"Note: {note}")
    if done.needs_posattn:
        sys.stdout.write(
            f"Exported: {hf} ({done.architecture}; loads with posattn installed and "
            "trust_remote_code=True)\n"
        )
        return
    largest = max(done.differences.values())
    lengths = ", ".join(map(str, done.differences))
    sys.stdout.write(
        f"Exported: {hf} ({done.architecture} of transformers; largest difference {largest:.1e} at "
        f"{lengths} tokens)\n"
    )
