"""`save_onnx`: the graph as an ONNX file, checked in onnxruntime."""

import importlib.util
import warnings
from pathlib import Path

import torch
from torch import Tensor

from posattn.encoder.model import MaskedLanguageModel
from posattn.errors import IncompatibleParts, PosattnError
from posattn.export.graph import Inputs, export_graph, largest_difference

PACKAGES = ("onnx", "onnxscript", "onnxruntime")


def save_onnx(model: MaskedLanguageModel, out: Path) -> float:
    """Write the ONNX file, checked, and return the largest difference in logits."""
    missing = [name for name in PACKAGES if importlib.util.find_spec(name) is None]
    if missing:
        raise IncompatibleParts(
            f"ONNX needs {', '.join(missing)}, which is not installed: pip install 'posattn[export]'"
        )
    program = export_graph(model)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # notes of the exporter on its own parts
            torch.onnx.export(
                program, (), str(out), output_names=["logits"], dynamo=True, verbose=False,
                external_data=False,
            )  # fmt: skip
        return _check(model, out)
    except (PosattnError, OSError):
        raise
    except Exception as error:  # of the exporter or the runtime, for an operation that they lack
        names = ", ".join(part.name for part in model.config.mechanism)
        first = str(error.__cause__ or error).strip().split("\n")[0]
        raise IncompatibleParts(
            f"the graph of the model with '{names}' cannot be an ONNX file that onnxruntime runs: {first}; "
            "posattn export --torch-export has no such limit"
        ) from error


def _check(model: MaskedLanguageModel, path: Path) -> float:
    import onnxruntime

    session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])

    def run(inputs: Inputs) -> Tensor:
        given = {name: tensor.numpy() for name, tensor in inputs.given().items()}
        return torch.from_numpy(session.run(["logits"], given)[0])

    return largest_difference(model, run)
