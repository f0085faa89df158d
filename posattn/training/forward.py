"""One batch through a model: placing tensors, autocast, and the loss of each target token."""

from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor, nn

from posattn.training.batches import Batch
from posattn.training.config import Precision

_AUTOCAST = {"bf16": torch.bfloat16, "float16": torch.float16}


@dataclass(frozen=True)
class Forward:
    """What a batch gave: logits and targets of selected tokens, row by row, and memory."""

    logits: Float[Tensor, "targets vocabulary"]
    targets: Int[Tensor, " targets"]
    memory: Any

    def losses(self) -> Float[Tensor, " targets"]:
        """Return the cross-entropy of each target token, in float32 or the model's wider type."""
        wide = torch.promote_types(self.logits.dtype, torch.float32)
        return F.cross_entropy(self.logits.to(wide), self.targets, reduction="none")


def autocast(device: torch.device, precision: Precision) -> AbstractContextManager[Any]:
    """Return the autocast context of a precision; weights and the loss stay as they are."""
    lower = _AUTOCAST.get(precision)
    return torch.autocast(device.type, dtype=lower, enabled=lower is not None)


def run_batch(
    model: nn.Module, batch: Batch, device: torch.device, precision: Precision, memory: Any = None
) -> Forward:
    """Run the model on a batch; only the selected tokens are decoded.

    A batch without padding is given without `visible`, which spares the model its masks. A batch
    without segments holds single texts, which are all segment 0; one without positions is counted.
    """
    selected = batch.selected.to(device)
    visible = None if bool(batch.visible.all()) else batch.visible
    segments = torch.zeros_like(batch.ids) if batch.segments is None else batch.segments
    targets = batch.targets.to(device)[selected]
    arguments = {
        "visible": _placed(visible, device),
        "documents": _placed(batch.documents, device),
        "segments": _placed(segments, device),
        "selected": selected,
    }
    if batch.positions is not None:
        arguments["positions"] = _placed(batch.positions, device)
    if memory is not None:
        arguments["memory"] = memory
    with autocast(device, precision):
        output = model(batch.ids.to(device), **arguments)
    return Forward(output.logits, targets, getattr(output, "memory", None))


def _placed(tensor: Tensor | None, device: torch.device) -> Tensor | None:
    return None if tensor is None else tensor.to(device)
