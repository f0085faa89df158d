"""The options that a mechanism is shown and asked about with: its defaults, or a shipped recipe's."""

from typing import Any

from pydantic import ValidationError

from posattn.encoder.config import EncoderConfig
from posattn.recipe.reader import read_file
from posattn.recipe.shipped import shipped_names


def example(name: str, **size: Any) -> EncoderConfig:
    """Return an encoder of this size with the mechanism alone, without dropout.

    The options are the defaults. Where these are refused, they are those of the first shipped recipe
    that uses the mechanism and is accepted. Raises what the defaults raise if there is none.
    """
    sizes = {"hidden_dropout": 0.0, "attention_dropout": 0.0, **size}
    try:
        return EncoderConfig.model_validate({**sizes, "mechanism": name})
    except ValidationError as refused:
        for part in (part for _, part in shipped_uses(name) if isinstance(part, dict)):
            try:
                return EncoderConfig.model_validate({**sizes, "mechanism": part})
            except ValidationError:
                continue
        raise refused


def shipped_uses(name: str) -> list[tuple[str, Any]]:
    """Return the shipped recipes that use the mechanism, each with what it writes of it."""
    found = []
    for recipe, path in shipped_names("recipe").items():
        parts = read_file(path).data.get("encoder", {}).get("mechanism", [])
        for part in parts if isinstance(parts, list) else [parts]:
            if name == (part.get("name") if isinstance(part, dict) else part):
                found.append((recipe, part))
    return found
