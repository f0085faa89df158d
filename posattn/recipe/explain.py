"""Validation errors as a user can use them: file, line, dotted path, value, what is allowed."""

import re
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from posattn.errors import RecipeError
from posattn.recipe.fields import (
    NOTHING,
    Section,
    child,
    nearest,
    section_at,
    sections,
    with_default_names,
)
from posattn.recipe.reader import Document, KeyPath, describe_kind

M = TypeVar("M", bound=BaseModel)

_WANTED = {
    "int_type": "a whole number",
    "int_from_float": "a whole number",
    "int_parsing": "a whole number",
    "float_type": "a number",
    "float_parsing": "a number",
    "bool_type": "true or false",
    "bool_parsing": "true or false",
    "string_type": "text",
    "tuple_type": "a list",
    "list_type": "a list",
    "dict_type": "a mapping",
    "model_type": "a section (a mapping of keys to values)",
    "model_attributes_type": "a section (a mapping of keys to values)",
    "none_required": "null",
    "finite_number": "a finite number",
}
_LIMITS = {
    "greater_than": ("gt", "greater than"),
    "greater_than_equal": ("ge", "at least"),
    "less_than": ("lt", "less than"),
    "less_than_equal": ("le", "at most"),
    "multiple_of": ("multiple_of", "a multiple of"),
}
_ABOUT_THE_ABSENT = ("missing", "disagreement")
_LONGEST = 100


def validate_document(config: type[M], document: Document, *, what: str = "recipe") -> M:
    """Return `document` as a `config`; raise one `RecipeError` that lists every fault in it."""
    document = Document(with_default_names(config, document.data), document.origins)
    try:
        return config.model_validate(document.data)
    except ValidationError as error:
        faults = [_fault(config, document, details) for details in error.errors(include_url=False)]
    except RecipeError as error:
        raise type(error)(f"{document.origin(())}: {error}") from error
    faults = list(dict.fromkeys(faults))
    if len(faults) == 1:
        raise RecipeError(faults[0])
    listed = "\n".join(f"  {fault}" for fault in faults)
    raise RecipeError(f"this {what} has {len(faults)} faults:\n{listed}")


def dotted(path: KeyPath) -> str:
    """Return `path` as users write it: `encoder.mechanism.base`."""
    return ".".join(str(part) for part in path)


def describe(value: object) -> str:
    """Return `value` for an error text, shortened."""
    text = describe_kind(value)
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}..."


def _fault(config: type[BaseModel], document: Document, details: ErrorDetails) -> str:
    path, value = _locate(document.data, details)
    message = _message(config, document, details, path, value)
    where = f"{document.origin(path)}: "
    return f"{where}{dotted(path)}: {message}" if path else f"{where}{message}"


def _locate(data: Any, details: ErrorDetails) -> tuple[KeyPath, Any]:
    """Return the path of an error in the data, without the steps that name a choice of types."""
    path: list[str | int] = []
    *above, last = details["loc"] or (None,)
    for part in above:
        found = child(data, part)
        if found is not NOTHING or details["type"] == "disagreement":
            path.append(part)
            data = None if found is NOTHING else found
    found = child(data, last)
    if last is not None and (found is not NOTHING or details["type"] in _ABOUT_THE_ABSENT):
        path.append(last)
        data = None if found is NOTHING else found
    return tuple(path), data


def _message(
    config: type[BaseModel], document: Document, details: ErrorDetails, path: KeyPath, value: Any
) -> str:
    kind, context = details["type"], details.get("ctx", {})
    if kind == "union_tag_not_found":
        return "needs a name that says which of the choices it is"
    if kind == "union_tag_invalid":
        near = nearest(str(context["tag"]), re.findall("'([^']*)'", str(context["expected_tags"])))
        hint = f"; did you mean '{near}'?" if near else ""
        return f"the name must be {context['expected_tags']}, not '{context['tag']}'{hint}"
    if kind == "extra_forbidden":
        return _unknown_key(config, document.data, path)
    if kind == "missing":
        return "is missing, and it has no default"
    if kind in _WANTED:
        return f"must be {_WANTED[kind]}, not {describe(value)}{_number_hint(kind, value)}"
    if kind in _LIMITS:
        key, words = _LIMITS[kind]
        return f"must be {words} {context[key]}, not {describe(value)}"
    if kind == "literal_error":
        near = nearest(str(value), re.findall("'([^']*)'", str(context["expected"])))
        hint = f"; did you mean '{near}'?" if near else ""
        return f"must be {context['expected']}, not {describe(value)}{hint}"
    if kind == "disagreement":
        return str(context["text"])
    if kind in ("value_error", "assertion_error"):
        return str(context.get("error", details["msg"]))
    if kind in ("too_long", "too_short"):
        long, limit = (
            kind == "too_long",
            context["max_length" if kind == "too_long" else "min_length"],
        )
        entries = "entry" if limit == 1 else "entries"
        return f"must have {'at most' if long else 'at least'} {limit} {entries}, not {len(value)}"
    said = details["msg"].replace("Input should", "must").replace("should", "must")
    return f"{said[:1].lower()}{said[1:]}, not {describe(value)}"


def _number_hint(kind: str, value: object) -> str:
    if kind.startswith("int") and isinstance(value, float) and value.is_integer():
        return f"; write {int(value)}"
    if kind.startswith(("int", "float")) and isinstance(value, str):
        digits = value.replace("_", "").strip()
        if digits.lower() in ("nan", "inf", "-inf"):
            return "; it must be finite"
        if digits.replace(".", "", 1).isdigit():
            return f"; write {digits} (no quotes, no _ in YAML 1.2)"
    if kind.startswith("bool") and isinstance(value, str):
        meant = {"yes": "true", "on": "true", "no": "false", "off": "false"}.get(value.lower())
        return f"; YAML 1.2 reads '{value}' as text, write {meant}" if meant else ""
    if kind == "string_type" and isinstance(value, bool):
        return f'; for the text write "{str(value).lower()}"'
    return ""


def _unknown_key(config: type[BaseModel], data: Any, path: KeyPath) -> str:
    key = str(path[-1])
    here = section_at(config, data, path[:-1])
    known = here.keys if here is not None else []
    near = nearest(key, known)
    others = [] if near else _elsewhere(config, key, here)
    parts = [f"unknown key '{key}'"]
    if near:
        parts.append(f"did you mean '{near}'?")
    parts.extend(others)
    owner = f" of the {here.kind} '{here.entry}'" if here is not None and here.entry else ""
    return f"{'; '.join(parts)} (known keys{owner}: {', '.join(known) or 'none'})"


def _elsewhere(config: type[BaseModel], key: str, here: Section | None) -> list[str]:
    """Return sentences on the other sections that know this key, or one much like it."""
    every = [section for section in sections(config) if section != here]
    near = nearest(key, list(dict.fromkeys(known for section in every for known in section.keys)))
    if near is None:
        return []
    return [_belongs(near, [section for section in every if near in section.keys], here)]


def _belongs(key: str, owners: list[Section], here: Section | None) -> str:
    rivals = [o for o in owners if here is not None and o.entry and o.path == here.path]
    if rivals:
        names = ", ".join(f"'{owner.entry}'" for owner in rivals)
        return f"'{key}' is an option of the {rivals[0].kind} {names}"
    places = []
    for owner in owners:
        label = f" ({', '.join(owner.label)})" if owner.label else ""
        places.append(dotted((*owner.path, key)) + label)
    return f"it belongs to another section: {' or '.join(dict.fromkeys(places))}"
