"""Differences between two recipes as dotted paths, and which of them a study has declared."""

from collections.abc import Iterable, Mapping
from typing import Any

from posattn.recipe.difference import ABSENT, flatten

Differences = dict[str, tuple[Any, Any]]


def differences(left: Mapping[str, Any], right: Mapping[str, Any]) -> Differences:
    """Return every dotted path at which the plain data of two recipes differ, with both values."""
    one, other = flatten(left), flatten(right)
    pairs = {path: (one.get(path, ABSENT), other.get(path, ABSENT)) for path in {**one, **other}}
    return {path: pair for path, pair in pairs.items() if not _same(*pair)}


def under(path: str, prefixes: Iterable[str]) -> bool:
    """Return whether `path` is one of the dotted prefixes, or below one.

    Numbers of list items may be left out of a prefix: `encoder.mechanism.base` means that of each.
    """
    plain = ".".join(part for part in path.split(".") if not part.isdigit())
    return any(
        name == prefix or name.startswith(f"{prefix}.")
        for prefix in prefixes
        for name in (path, plain)
    )


def split(found: Differences, prefixes: Iterable[str]) -> tuple[Differences, Differences]:
    """Return the differences under `prefixes`, and the others."""
    allowed = tuple(prefixes)
    inside = {path: pair for path, pair in found.items() if under(path, allowed)}
    return inside, {path: pair for path, pair in found.items() if path not in inside}


def describe(found: Differences, left: str, right: str) -> str:
    """Return one line for each difference: the path, and what each side says."""
    return "\n".join(
        f"  {path}: {left} has {_show(one)}, {right} has {_show(other)}"
        for path, (one, other) in found.items()
    )


def written_changes(overrides: Mapping[str, Any]) -> dict[str, Any]:
    """Return nested overrides by dotted path; a choice with its options (`name: ...`) stays whole."""
    changes: dict[str, Any] = {}
    for key, value in overrides.items():
        if isinstance(value, Mapping) and value and "name" not in value:
            below = written_changes(value)
            changes.update({f"{key}.{path}": item for path, item in below.items()})
        else:
            changes[key] = value
    return changes


def _same(one: Any, other: Any) -> bool:
    return type(one) is type(other) and bool(one == other)


def _show(value: Any) -> str:
    text = "nothing" if value is ABSENT else repr(value)
    return text if len(text) <= 120 else f"{text[:117]}..."
