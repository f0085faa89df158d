"""`posattn export`: a trained model, or a recipe's, for other programs."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from posattn.cli.app import app
from posattn.errors import RecipeError


@app.command(
    epilog="Examples: posattn export runs/rope --onnx --out rope.onnx | "
    "posattn export quick/disentangled --torch-export --out disentangled.pt2"
)
def export(
    source: Annotated[
        str, typer.Argument(metavar="RUN_OR_RECIPE", help="A finished run, or a recipe.")
    ],
    out: Annotated[Path, typer.Option(metavar="FILE", help="The file to write.")],
    onnx: Annotated[bool, typer.Option("--onnx", help="An ONNX file.")] = False,
    torch_export: Annotated[
        bool, typer.Option("--torch-export", help="A file for torch.export.load.")
    ] = False,
) -> None:
    """Write the model as one graph for any batch and length, after a check where it will run.

    The graph takes ids and visible (true at real tokens), and segments if the encoder has them. Its
    logits are compared with the model's at three shapes, one with padding; a model that cannot be
    exported is refused with the reason.
    """
    if onnx == torch_export:
        raise RecipeError("say which file is wanted: --onnx or --torch-export")
    from posattn.export import load_model, save_graph, save_onnx

    model = load_model(source)
    out.parent.mkdir(parents=True, exist_ok=True)
    difference = (save_onnx if onnx else save_graph)(model, out)
    sys.stdout.write(f"Exported: {out} (logits differ by at most {difference:.1e})\n")
