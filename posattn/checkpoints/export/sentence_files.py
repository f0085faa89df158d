"""The pooling of a sentence encoder, in the files in which sentence-transformers keeps it."""

from typing import Any

from posattn.checkpoints.pretrained import Pretrained
from posattn.checkpoints.sentence import SENTENCE

_MODES = {
    "first": "pooling_mode_cls_token",
    "mean": "pooling_mode_mean_tokens",
    "max": "pooling_mode_max_tokens",
}


def sentence_files(made: Pretrained) -> dict[str, Any]:
    """Return the contents of the files by name; nothing if the model is no sentence encoder."""
    if (head := made.heads().get(SENTENCE)) is None:
        return {}
    options = head.model_dump()
    kinds = ["Transformer", "Pooling", *(["Normalize"] if options["normalize"] else [])]
    modules = [
        {
            "idx": index,
            "name": str(index),
            "path": f"{index}_{kind}" if index else "",
            "type": f"sentence_transformers.models.{kind}",
        }
        for index, kind in enumerate(kinds)
    ]
    pooling = {mode: name == options["pool"] for name, mode in _MODES.items()}
    width = {"word_embedding_dimension": made.encoder.config.hidden_size}
    return {"modules.json": modules, "1_Pooling/config.json": width | pooling}
