"""Whether a run may go on under a recipe: what decides its numbers must be as it was."""

from typing import Any

from ruamel.yaml import YAML

from posattn.errors import CheckpointError

HARMLESS = {
    "name": "",
    "description": "",
    "train.log_every": "",
    "train.evaluate_every": "",
    "train.evaluation_tokens": "",
    "train.checkpoint_every": "",
    "train.keep_checkpoints": "",
    "train.workers": "",
    "train.threads": "sums may round differently than in a run without a break",
    "train.device": "sums may round differently than in a run without a break",
}
"""Keys that may differ at a resume, each with the note that a difference leaves."""


def recipe_changes(old: str, new: str) -> dict[str, tuple[Any, Any]]:
    """Return the dotted keys in which two recipe texts differ, with both values."""
    before, after = _flat(_load(old)), _flat(_load(new))
    return {
        key: (before.get(key), after.get(key))
        for key in sorted(before.keys() | after.keys())
        if before.get(key) != after.get(key) or (key in before) != (key in after)
    }


def check_same_recipe(old: str, new: str, where: str) -> list[str]:
    """Return notes on harmless differences; raise `CheckpointError` if another run was meant."""
    changes = recipe_changes(old, new)
    decisive = {key: pair for key, pair in changes.items() if key not in HARMLESS}
    if decisive:
        listed = "; ".join(f"{key}: {a!r} there, {b!r} now" for key, (a, b) in decisive.items())
        raise CheckpointError(
            f"{where} holds a run of another recipe ({listed}). Go on with the recipe it was "
            "started with, choose another folder, or delete this one. These keys may change: "
            f"{', '.join(HARMLESS)}"
        )
    return [
        f"{key} was {old_value!r} and is {new_value!r} now: {HARMLESS[key]}"
        for key, (old_value, new_value) in changes.items()
        if HARMLESS[key]
    ]


def _load(text: str) -> Any:
    return YAML(typ="safe", pure=True).load(text)


def _flat(value: Any, prefix: str = "") -> dict[str, Any]:
    if not isinstance(value, dict) or not value:
        return {prefix: value}
    flat: dict[str, Any] = {}
    for key, item in value.items():
        flat.update(_flat(item, f"{prefix}.{key}" if prefix else str(key)))
    return flat
