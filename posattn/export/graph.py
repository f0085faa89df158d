"""`export_graph`: the whole model as one `torch.export` graph with symbolic batch and length."""

from pathlib import Path
from typing import Any, NamedTuple, final

import torch
from torch import Tensor, nn
from torch.export import Dim, ExportedProgram

from posattn.encoder.model import MaskedLanguageModel
from posattn.errors import IncompatibleParts

NO_LIMIT = 2**20
TRIED = (2, 11)
SHAPES = ((1, 8), (1, 13), (2, 8))
"""Batch and length of the inputs that a graph is checked with; of two texts the second is padded."""


class Inputs(NamedTuple):
    """What the graph takes, in this order; `segments` only if the encoder has a table of them."""

    ids: Tensor
    visible: Tensor
    segments: Tensor | None

    def given(self) -> dict[str, Tensor]:
        """Return the tensors that there are, by name."""
        return {key: value for key, value in self._asdict().items() if value is not None}


@final
class Exportable(nn.Module):
    """Tokens in, logits at every place out."""

    def __init__(self, model: MaskedLanguageModel) -> None:
        """Take the model."""
        super().__init__()
        self.model = model

    def forward(self, ids: Tensor, visible: Tensor, segments: Tensor | None = None) -> Tensor:
        """Return the logits; those at padding mean nothing."""
        return self.model(ids, visible=visible, segments=segments).logits


def export_graph(model: MaskedLanguageModel) -> ExportedProgram:
    """Return the graph, correct for every batch and length that the model takes.

    Raises `IncompatibleParts` if a part of the model does not let its length stay symbolic.
    """
    inputs = make_inputs(model, *TRIED).given()
    limit = model.max_length()
    batch = Dim("batch", max=NO_LIMIT)
    length = Dim("length", max=NO_LIMIT if limit is None else limit)
    shapes: dict[str, Any] = {name: {0: batch, 1: length} for name in inputs}
    with torch.no_grad():
        Exportable(model)(**inputs)  # a fault of the model itself is told as what it is
    try:
        with torch.no_grad():
            return torch.export.export(
                Exportable(model), (), kwargs=inputs, dynamic_shapes=shapes, strict=False
            )
    except Exception as error:  # torch raises many kinds for a part that looks at values
        names = ", ".join(part.name for part in model.config.mechanism)
        first = str(error).strip().split("\n")[0]
        raise IncompatibleParts(
            f"the model with '{names}' cannot be one graph for all lengths: {first}"
        ) from error


def save_graph(model: MaskedLanguageModel, out: Path) -> float:
    """Write the graph for `torch.export.load`, checked, and return the largest difference in logits."""
    program = export_graph(model)
    torch.export.save(program, out)
    loaded = torch.export.load(out).module()
    return largest_difference(model, lambda inputs: loaded(**inputs.given()))


def make_inputs(model: MaskedLanguageModel, batch: int, length: int) -> Inputs:
    """Return tokens, the last third of the second text being padding."""
    vocabulary = model.encoder.tokens.num_embeddings
    ids = torch.arange(batch * length).view(batch, length) % vocabulary
    visible = torch.ones(batch, length, dtype=torch.bool)
    if batch > 1:
        visible[1, -(length // 3) :] = False
    return Inputs(ids, visible, torch.zeros_like(ids) if model.config.segments else None)


def largest_difference(model: MaskedLanguageModel, run: Any) -> float:
    """Return the largest difference of logits at real tokens over all shapes; every call is made twice.

    Raises `IncompatibleParts` if it is above 1e-4 or if the two calls differ at all.
    """
    worst = 0.0
    limit = model.max_length() or NO_LIMIT
    for batch, length in SHAPES:
        inputs = make_inputs(model, batch, min(length, limit))
        with torch.no_grad():
            expected = Exportable(model)(**inputs.given())
            first, again = run(inputs), run(inputs)
        if not torch.equal(first, again):
            raise IncompatibleParts("the exported graph gave two answers to one input; use eager")
        worst = max(worst, float((first - expected)[inputs.visible].abs().max()))
    if not worst <= 1e-4:
        raise IncompatibleParts(
            f"the exported graph differs from the model by {worst:.2g}, more than 1e-4; it is not usable"
        )
    return worst
