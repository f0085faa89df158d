"""`record`: a forward of a model with every attention call that it made, in order, under its name.

The forward is the model's own: the calls are told to an observer on their way to the backend, and what the
model returns is what it returns without one.
"""

from dataclasses import dataclass
from typing import Any

from jaxtyping import Int
from torch import Tensor

from posattn.backends import AttentionCall
from posattn.encoder.encoder import Encoder
from posattn.encoder.model import MaskedLanguageModel, ModelOutput
from posattn.errors import IncompatibleParts


@dataclass(frozen=True)
class Attention:
    """One attention of a forward; `content_term` is the field's name for its query-key term."""

    name: str
    call: AttentionCall
    content_term: str


@dataclass(frozen=True)
class Recording:
    """What a model returned, and the attentions that led there; decoder passes come last."""

    output: "ModelOutput | Tensor"
    attentions: tuple[Attention, ...]


def record(
    model: MaskedLanguageModel | Encoder, ids: Int[Tensor, "batch length"], **inputs: Any
) -> Recording:
    """Return what `model(ids, **inputs)` returns, with all its attentions.

    Layers are named from 1; what a decoder runs after the encoder's layers, or in place of the last, is
    `decoder pass 1` and so on. Raises `IncompatibleParts` where `unpad` takes texts out of their rows.
    """
    taken_apart = any(inputs.get(key) is not None for key in ("visible", "documents"))
    if model.config.unpad and taken_apart:
        raise IncompatibleParts(
            "encoder.unpad takes texts out of their rows, whose attention cannot be shown row by row; "
            "give one text without padding, or set unpad to false, which gives equal results"
        )
    seen: list[tuple[AttentionCall, str]] = []
    output = model(ids, observer=lambda call, term: seen.append((call, term)), **inputs)
    passes = model.decoder_config.own_passes() if isinstance(model, MaskedLanguageModel) else 0
    names = [f"layer {number}" for number in range(1, len(seen) - passes + 1)]
    names += [f"decoder pass {number}" for number in range(1, passes + 1)]
    attentions = (Attention(name, *one) for name, one in zip(names, seen, strict=True))
    return Recording(output, tuple(attentions))
