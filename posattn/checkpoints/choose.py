"""Which family a checkpoint belongs to; custom code is refused unless a family is exactly that code."""

from collections.abc import Iterator
from typing import Any

from posattn.checkpoints.families import Family, families
from posattn.checkpoints.source import Source
from posattn.errors import CheckpointError


def choose_family(source: Source) -> Family:
    """Return the family of a config.json; CheckpointError if there is none, naming those there are."""
    config = source.config
    known = [families.get(name)() for name in families.names()]
    model_type = str(config.get("model_type", ""))
    custom = set(_classes(config.get("auto_map")))
    if custom:
        claiming = [family for family in known if custom <= family.custom_classes]
        if not claiming:
            raise CheckpointError(
                f"{source.name}: config.json has auto_map, so the weights belong to custom code "
                f"({', '.join(sorted(custom))}) and not to what model_type '{model_type}' names. "
                "posattn never runs such code, and has no mapping for it"
            )
        return claiming[0]
    fitting = [family for family in known if model_type in family.model_types]
    if not fitting:
        types = ", ".join(sorted(name for family in known for name in family.model_types))
        raise CheckpointError(
            f"{source.name}: config.json has model_type '{model_type}', which no checkpoint family "
            f"takes (known: {types}); a plug-in of the group posattn.checkpoints can add one"
        )
    return fitting[0]


def _classes(auto_map: Any) -> Iterator[str]:
    """Yield the class names of an auto_map, without the repository they come from."""
    for value in (auto_map or {}).values():
        for name in value if isinstance(value, list) else [value]:
            if name is not None:
                yield str(name).rpartition("--")[2]
