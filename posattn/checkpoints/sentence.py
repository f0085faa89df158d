"""Sentence encoders: the pooling that sentence-transformers keeps beside the weights, as a `vector` head."""

from dataclasses import dataclass
from typing import Any

from posattn.checkpoints.source import Source

SENTENCE = "sentence"
_MODES = {
    "pooling_mode_cls_token": "first",
    "pooling_mode_mean_tokens": "mean",
    "pooling_mode_max_tokens": "max",
}
_MODE_NAMES = {"cls": "first", "mean": "mean", "max": "max"}


@dataclass(frozen=True)
class SentencePart:
    """The head, or why there is none; and the length to which texts are cut."""

    tasks: dict[str, dict[str, Any]]
    max_length: int | None
    notes: tuple[str, ...]


def find_sentence_part(source: Source) -> SentencePart:
    """Return what modules.json and the folders it names say; nothing if it is no sentence encoder."""
    modules = source.optional_json(source.folder / "modules.json")
    if not isinstance(modules, list):
        return SentencePart({}, None, ())
    kinds = [str(module.get("type", "")).rpartition(".")[2] for module in modules]
    settings = source.optional_json(source.weights_folder / "sentence_bert_config.json") or {}
    limit = settings.get("max_seq_length")
    length = limit if isinstance(limit, int) else None
    pooling, problem = _pooling(source, modules, kinds)
    if problem:
        note = f"modules.json: {problem}, so there are no sentence embeddings"
        return SentencePart({}, length, (note,))
    head = {"name": "vector", "pool": pooling, "normalize": "Normalize" in kinds}
    return SentencePart({SENTENCE: head}, length, ())


def _pooling(
    source: Source, modules: list[dict[str, Any]], kinds: list[str]
) -> tuple[str | None, str]:
    """Return how states are pooled, or what of it posattn does not compute."""
    strange = [kind for kind in kinds if kind not in ("Transformer", "Pooling", "Normalize")]
    if strange:
        return None, f"it has {', '.join(strange)}, which posattn does not compute"
    if "Pooling" not in kinds:
        return None, "it has no Pooling"
    folder = source.folder / str(modules[kinds.index("Pooling")].get("path", ""))
    config = source.optional_json(folder / "config.json") or {}
    on = [key for key, value in config.items() if key.startswith("pooling_mode_") and value is True]
    modes = [_MODES.get(key) for key in on]
    if isinstance(config.get("pooling_mode"), str):
        on, modes = [config["pooling_mode"]], [_MODE_NAMES.get(config["pooling_mode"])]
    if len(modes) != 1 or modes[0] is None:
        return (
            None,
            f"it pools by {', '.join(on) or 'nothing'}, and posattn by one of first, mean, max",
        )
    return modes[0], ""
