"""Encoder sections as plain data in one form, and where two of them differ."""

from collections.abc import Iterator
from typing import Any

from posattn.encoder.config import EncoderConfig

OF_TRAINING = ("hidden_dropout", "attention_dropout", "table_dropout", "initializer_range")
"""Options that do not change what a trained model computes."""


def plain_section(encoder: EncoderConfig, rows: int) -> dict[str, Any]:
    """Return the section with sizes as numbers and layers as lists, and without the backend."""
    found = encoder.model_dump(mode="json")
    found["token_rows"] = rows
    found["intermediate_size"] = encoder.inner_size()
    layers = range(encoder.num_layers)
    for part, config in zip(found["mechanism"], encoder.mechanism, strict=True):
        part["layers"] = [layer for layer in layers if config.acts_in(layer)]
    if (window := encoder.window) is not None:
        found["window"]["layers"] = [layer for layer in layers if window.acts_in(layer)]
    del found["backend"]
    return found


def differences(ours: Any, theirs: Any, path: str) -> Iterator[str]:
    """Yield the options in which two sections differ, with both values."""
    if isinstance(ours, dict) and isinstance(theirs, dict) and ours.keys() == theirs.keys():
        for key in ours:
            yield from differences(ours[key], theirs[key], f"{path}.{key}")
    elif isinstance(ours, list) and isinstance(theirs, list) and _alike(ours, theirs):
        for index, (one, other) in enumerate(zip(ours, theirs, strict=True)):
            yield from differences(one, other, f"{path}.{index}")
    elif ours != theirs:
        yield f"{path} is {_short(ours)}, and there {_short(theirs)}"


def _alike(ours: list[Any], theirs: list[Any]) -> bool:
    """Return whether two lists are of mechanisms of the same names."""
    named = all(isinstance(item, dict) for item in (*ours, *theirs))
    return named and [item.get("name") for item in ours] == [item.get("name") for item in theirs]


def _short(value: Any) -> str:
    if isinstance(value, list) and value and isinstance(value[0], dict):
        return "[" + ", ".join(str(item.get("name", item)) for item in value) + "]"
    return str(value)
