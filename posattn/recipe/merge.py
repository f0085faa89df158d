"""How a recipe takes over another: `extends`, the arms of a study and `--set` all merge alike.

Mappings merge key by key, except that a mapping which brings another `name` than the inherited one
replaces it whole: the options of one mechanism mean nothing to another. A mapping without a `name`
over a bare name (`mechanism: rope`) adds options to it. Lists and scalars replace; a mapping over a
list of one (as saved recipes write `mechanism`) merges with the one.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from posattn.errors import RecipeError
from posattn.recipe.reader import Document, KeyPath, Origin, read_value


@dataclass(frozen=True)
class Override:
    """A value for one dotted path, and who said so."""

    path: tuple[str, ...]
    value: Any
    origin: Origin

    def document(self) -> Document:
        """Return the override as a document that can be merged over another."""
        data: Any = self.value
        for key in reversed(self.path):
            data = {key: data}
        return Document(data, {self.path[:end]: self.origin for end in range(len(self.path) + 1)})


def parse_override(text: str) -> Override:
    """Return the override that `a.b=c` spells; `c` is read as YAML."""
    dotted, equals, value = text.partition("=")
    origin = Origin(f"--set {text}")
    if not equals:
        raise RecipeError(f"{origin}: an override is written path=value, such as train.steps=100")
    return override(dotted.strip(), read_value(value, str(origin)), origin)


def override(dotted: str, value: Any, origin: Origin) -> Override:
    """Return the override of the dotted path `dotted` by `value`."""
    path = tuple(dotted.split("."))
    if not all(part.strip() == part and part for part in path):
        raise RecipeError(f"{origin}: '{dotted}' is not a dotted path, such as encoder.num_layers")
    if path == ("extends",):
        raise RecipeError(f"{origin}: 'extends' belongs in a file; name another recipe instead")
    return Override(path, value, origin)


def read_overrides(
    overrides: Sequence[str | Override] | Mapping[str, Any], source: str = "an override"
) -> list[Override]:
    """Return overrides given as `a.b=c` texts, as objects, or as a mapping of dotted paths."""
    if isinstance(overrides, str):
        raise RecipeError(f"overrides are a list of texts, not one text; write [{overrides!r}]")
    if isinstance(overrides, Mapping):
        return [override(dotted, value, Origin(source)) for dotted, value in overrides.items()]
    return [item if isinstance(item, Override) else parse_override(item) for item in overrides]


def merge(base: Document, over: Document) -> Document:
    """Return `base` with everything that `over` says taken over from it."""
    origins = dict(base.origins)
    data = _merge(base.data, over, (), over.data, origins)
    return Document(data, origins)


def _merge(
    inherited: Any, over: Document, path: KeyPath, value: Any, origins: dict[KeyPath, Origin]
) -> Any:
    if isinstance(value, dict) and isinstance(inherited, str) and "name" not in value:
        inherited = {"name": inherited}
        origins[(*path, "name")] = origins.get(path, Origin("the recipe"))
    if isinstance(inherited, list) and isinstance(value, dict):
        if _indexes(value, inherited):
            return _merge_items(inherited, over, path, value, origins)
        if len(inherited) == 1 and isinstance(inherited[0], (str, dict)):
            return _merge_single(inherited[0], over, path, value, origins)
    if not isinstance(value, dict) or not isinstance(inherited, dict):
        return _replace(over, path, value, origins)
    if path and "name" in value and value["name"] != inherited.get("name"):
        return _replace(over, path, value, origins)
    merged = dict(inherited)
    origins[path] = over.origin(path)
    for key, item in value.items():
        below = (*path, key)
        if key in inherited:
            merged[key] = _merge(inherited[key], over, below, item, origins)
        else:
            merged[key] = _replace(over, below, item, origins)
    return merged


def _merge_single(
    inherited: Any, over: Document, path: KeyPath, value: Any, origins: dict[KeyPath, Origin]
) -> Any:
    """Merge with the one item of a list; the result is that item, no longer a list."""
    item = (*path, 0)
    for key in [key for key in origins if key[: len(item)] == item]:
        origins[path + key[len(item) :]] = origins.pop(key)
    return _merge(inherited, over, path, value, origins)


def _indexes(value: dict[str, Any], items: list[Any]) -> bool:
    return bool(value) and all(key.isdigit() and int(key) < len(items) for key in value)


def _merge_items(
    inherited: list[Any],
    over: Document,
    path: KeyPath,
    value: dict[str, Any],
    origins: dict[KeyPath, Origin],
) -> list[Any]:
    """Merge into single items of a list: `--set encoder.mechanism.1.base=500`."""
    merged = list(inherited)
    for key, item in value.items():
        part: dict[KeyPath, Origin] = {}
        index = int(key)
        moved = Document(over.data, _renumbered(over.origins, (*path, key), (*path, index)))
        inner = {k: v for k, v in origins.items() if k[: len(path) + 1] == (*path, index)}
        part.update(inner)
        merged[index] = _merge(merged[index], moved, (*path, index), item, part)
        for stale in inner:
            del origins[stale]
        origins.update(part)
    return merged


def _renumbered(
    origins: dict[KeyPath, Origin], old: KeyPath, new: KeyPath
) -> dict[KeyPath, Origin]:
    size = len(old)
    return {(new + k[size:] if k[:size] == old else k): v for k, v in origins.items()}


def _replace(over: Document, path: KeyPath, value: Any, origins: dict[KeyPath, Origin]) -> Any:
    for stale in [key for key in origins if key[: len(path)] == path]:
        del origins[stale]
    for key, origin in over.origins.items():
        if key[: len(path)] == path:
            origins[key] = origin
    origins.setdefault(path, over.origin(path))
    return value
