"""What keys a section may have: walking config classes, through lists and open fields."""

import difflib
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, Final, get_args, get_origin

from pydantic import BaseModel

from posattn.config import OpenTo
from posattn.recipe.reader import KeyPath

NOTHING: Final = object()
"""Stands for a part that is not there."""


@dataclass(frozen=True)
class Section:
    """A config class and where in the recipe it is read.

    `entry` is the `name` that picks it, in the registry of that `kind` or among a few choices; `within`
    says which entries it lies in. `keyed`: there is one under each key of a mapping.
    """

    path: tuple[str, ...]
    config: type[BaseModel]
    kind: str = ""
    entry: str = ""
    within: tuple[str, ...] = ()
    keyed: bool = False

    @property
    def label(self) -> tuple[str, ...]:
        """Return the entries that lead here, this one included: `mechanism 'rope'`."""
        return (*self.within, f"{self.kind} '{self.entry}'") if self.entry else self.within

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
        data = child(data, part)
        if isinstance(part, int):
            continue
        names = tuple(str(step) for step in path[: index + 1])
        if any(section.keyed for section in current):
            current = [replace(section, keyed=False) for section in current]
            continue
        current = [
            found
            for section in current
            if part in section.config.model_fields
            for found in _children(section, str(part), names)
        ]
    name = data.get("name") if isinstance(data, dict) else None
    fitting = [section for section in current if section.entry in ("", name)]
    return fitting[0] if fitting else None


def with_default_names(config: type[BaseModel], data: Any) -> Any:
    """Return `data` where a mapping without a `name` has that of the field's default.

    So `objective.probability=0.3` is enough where the recipe leaves the objective to its default.
    """
    return _named(Section((), config), data)


def _named(section: Section, data: Any) -> Any:
    if not isinstance(data, dict):
        return data
    named = dict(data)
    for key in section.keys:
        value = data.get(key)
        default = getattr(section.config.model_fields[key].default, "name", None)
        if isinstance(value, dict):
            if "name" not in value and isinstance(default, str):
                value = {"name": default, **value}
            named[key] = _named_child(section, key, value)
        elif isinstance(value, list):
            named[key] = [_named_child(section, key, item) for item in value]
    return named


def _named_child(section: Section, key: str, value: Any) -> Any:
    name = value.get("name") if isinstance(value, dict) else None
    fitting = (child for child in _children(section, key, ()) if child.entry in ("", name))
    child = next(fitting, None)
    if child is None:
        return value
    if child.keyed and isinstance(value, dict):
        return {key: _named(child, item) for key, item in value.items()}
    return _named(child, value)


def nearest(key: str, known: list[str]) -> str | None:
    """Return the known key that `key` is probably meant to be: misspelt, shortened, or its initials."""
    plain = key.replace("-", "_").lower()
    if plain in known:
        return plain
    shortened = [name for name in known if name.startswith(f"{plain}_")]
    by_initials = [name for name in known if plain == _initials(name)]
    close = difflib.get_close_matches(plain, known, n=1, cutoff=0.7)
    initials = {_initials(name): name for name in reversed(known) if "_" in name}
    nearly = difflib.get_close_matches(plain, list(initials), n=1, cutoff=0.75)
    guesses = [*shortened, *by_initials, *close, *(initials[short] for short in nearly)]
    return next(iter(guesses), None)


def _initials(name: str) -> str:
    return "".join(part[0] for part in name.split("_") if part) if "_" in name else ""


def child(data: Any, part: str | int | None) -> Any:
    """Return the part of a mapping or list under a key or number, or `NOTHING`."""
    if isinstance(data, dict) and part in data:
        return data[part]
    if isinstance(data, (list, tuple)) and isinstance(part, int) and part < len(data):
        return data[part]
    return NOTHING


def _below(section: Section, seen: set[type[BaseModel]]) -> Iterator[Section]:
    yield section
    if section.config in seen:
        return
    for key in section.keys:
        for child in _children(section, key, (*section.path, key)):
            yield from _below(child, {*seen, section.config})


def _children(parent: Section, key: str, path: tuple[str, ...]) -> Iterator[Section]:
    field = parent.config.model_fields[key]
    for child in _of_type(field.annotation, list(field.metadata), path):
        yield replace(child, within=parent.label)


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
    keyed = get_origin(annotation) is dict
    for argument in arguments[:1] if marks else arguments:
        for section in _of_type(argument, marks, path):
            yield replace(section, keyed=section.keyed or keyed)
