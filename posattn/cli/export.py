"""`posattn export`: a trained model for Hugging Face, or as one graph for other programs."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from posattn.cli.app import JsonOption, app, print_json, say
from posattn.errors import RecipeError

if TYPE_CHECKING:
    from posattn.checkpoints.export import Exported


@app.command(
    epilog="Examples: posattn export runs/mine --hf exported/mine | "
    "posattn export runs/emd --hf exported/encoder --encoder-only | "
    "posattn export runs/rope --onnx --out rope.onnx | "
    "posattn export quick/disentangled --torch-export --out disentangled.pt2. "
    "Exit codes: 0 it is written, 2 bad options, 4 there is no finished model, or it was not equal."
)
def export(
    source: Annotated[
        str,
        typer.Argument(
            metavar="RUN_OR_RECIPE",
            help="A finished run, with --hf also what posattn import or swap wrote; for graphs also "
            "a recipe.",
        ),
    ],
    hf: Annotated[
        Path | None, typer.Option("--hf", metavar="DIR", help="A folder for Hugging Face.")
    ] = None,
    encoder_only: Annotated[
        bool, typer.Option("--encoder-only", help="With --hf: leave the decoder and all heads out.")
    ] = False,
    as_json: JsonOption = False,
    onnx: Annotated[bool, typer.Option("--onnx", help="An ONNX file, at --out.")] = False,
    torch_export: Annotated[
        bool, typer.Option("--torch-export", help="A file for torch.export.load, at --out.")
    ] = False,
    out: Annotated[
        Path | None, typer.Option("--out", metavar="FILE", help="The file of a graph.")
    ] = None,
) -> None:
    """Write the model where others load it, after a check that outputs are equal there.

    With --hf the folder has weights, tokenizer and model card as AutoModel.from_pretrained loads them.
    A graph takes ids and visible (true at real tokens), and segments if the encoder has them, of any
    batch and length.
    """
    if (hf is not None) + onnx + torch_export != 1:
        raise RecipeError("say which form is wanted: --hf DIR, --onnx or --torch-export")
    if hf is None:
        if encoder_only or as_json:
            raise RecipeError("--encoder-only and --json belong to --hf; leave them out")
        _write_graph(source, out, onnx)
        return
    if out is not None:
        raise RecipeError("--hf names the folder to write itself; leave --out out")
    from posattn.checkpoints.export import export_run

    done = export_run(source, hf, encoder_only=encoder_only)
    if as_json:
        print_json(done.record())
    else:
        _tell(done, hf)


def _write_graph(source: str, out: Path | None, onnx: bool) -> None:
    from posattn.export import load_model, save_graph, save_onnx

    if out is None:
        raise RecipeError("a graph is one file; name it with --out FILE")
    model = load_model(source)
    out.parent.mkdir(parents=True, exist_ok=True)
    difference = (save_onnx if onnx else save_graph)(model, out)
    sys.stdout.write(f"Exported: {out} (logits differ by at most {difference:.1e})\n")


def _tell(done: "Exported", folder: Path) -> None:
    for reason in done.reasons:
        say(f"No class of transformers computes this model; {reason}")
    for note in done.notes:
        say(f"Note: {note}")
    found = "loads with posattn installed and trust_remote_code=True"
    if not done.needs_posattn:
        lengths = ", ".join(map(str, done.differences))
        largest = max(done.differences.values())
        found = f"of transformers; largest difference {largest:.1e} at {lengths} tokens"
    sys.stdout.write(f"Exported: {folder} ({done.architecture} {found})\n")
