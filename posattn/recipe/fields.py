"""What keys a section may have: walking config classes, through lists and open fields."""

import difflib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, get_args

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from posattn.config import OpenTo
from posattn.recipe.reader import KeyPath


@dataclass(frozen=True)
class Section:
    """A config class and where in the recipe it is read; `entry` is its name in a registry."""

    path: tuple[str, ...]
    config: type[BaseModel]
    kind: str = ""
    entry: str = ""

    @property
    def keys(self) -> list[str]:
        """Return the keys this section may have."""
        return list(self.config.model_fields)


def sections(config: type[BaseModel], path: tuple[str, ...] = ()) -> Iterator[Section]:
    """Yield `config` and every section below it, with every entry of every open field."""
    yield from _below(Section(path, config), set())


def section_at(root: type[BaseModel], data: Any, path: KeyPath) -> Section | None:
    """Return the section that reads the mapping at `path` of `data`, if a config class does."""
    current: list[Section] = [Section((), root)]
    for index, part in enumerate(path):
        data = _child(data, part)
        if isinstance(part, int):
            continue
        names = tuple(str(step) for step in path[: index + 1])
        current = [
            found
            for section in current
            if part in section.config.model_fields
            for found in _children(section.config.model_fields[part], names)
        ]
    name = data.get("name") if isinstance(data, dict) else None
    fitting = [section for section in current if section.entry in ("", name)]
    return fitting[0] if fitting else None


def nearest(key: str, known: list[str]) -> str | None:
    """Return the known key that `key` is probably meant to be: misspelt, or its initials."""
    plain = key.replace("-", "_").lower()
    if plain in known:
        return plain
    by_initials = [name for name in known if plain == _initials(name)]
    close = difflib.get_close_matches(plain, known, n=1, cutoff=0.7)
    return next(iter(by_initials + close), None)


def _initials(name: str) -> str:
    parts = name.split("_")
    return "".join(part[0] for part in parts if part) if len(parts) > 1 else ""


def _child(data: Any, part: str | int) -> Any:
    if isinstance(data, dict):
        return data.get(part)
    if isinstance(data, (list, tuple)) and isinstance(part, int) and part < len(data):
        return data[part]
    return None


def _below(section: Section, seen: set[type[BaseModel]]) -> Iterator[Section]:
    yield section
    if section.config in seen:
        return
    for key, field in section.config.model_fields.items():
        for child in _children(field, (*section.path, key)):
            yield from _below(child, {*seen, section.config})


def _children(field: FieldInfo, path: tuple[str, ...]) -> Iterator[Section]:
    yield from _of_type(field.annotation, list(field.metadata), path)


def _of_type(annotation: Any, metadata: list[Any], path: tuple[str, ...]) -> Iterator[Section]:
    opens = [mark for mark in metadata if isinstance(mark, OpenTo)]
    if opens:
        registry = opens[0].registry
        for name in registry.names():
            yield Section(path, registry.get(name).Config, registry.kind, name)
        return
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        named = annotation.model_fields.get("name")
        default = named.default if named is not None else None
        yield Section(path, annotation, "choice", default if isinstance(default, str) else "")
        return
    arguments = get_args(annotation)
    marks = list(getattr(annotation, "__metadata__", ()))
    for argument in arguments[:1] if marks else arguments:
        yield from _of_type(argument, marks, path)
