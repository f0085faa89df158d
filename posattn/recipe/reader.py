"""YAML 1.2 text to plain data, with the file, line and column of every value.

The syntax is read by ruamel.yaml; what a scalar means is decided in `scalars`. Nothing is executed,
no tag outside the core schema is known, and the size after expanding aliases is bounded.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.error import MarkedYAMLError, YAMLError
from ruamel.yaml.events import (
    AliasEvent,
    DocumentStartEvent,
    Event,
    MappingEndEvent,
    MappingStartEvent,
    ScalarEvent,
    SequenceEndEvent,
    SequenceStartEvent,
    StreamEndEvent,
)

from posattn.errors import RecipeError
from posattn.recipe.scalars import resolve_number, resolve_plain

MAX_BYTES = 512 * 1024
MAX_VALUES = 20_000
MAX_MERGES = 2_000
MAX_DEPTH = 32

KeyPath = tuple[str | int, ...]


@dataclass(frozen=True)
class Origin:
    """Where a value was written; `line` and `column` count from 1."""

    source: str
    line: int = 0
    column: int = 0

    def __str__(self) -> str:
        return f"{self.source}:{self.line}" if self.line else self.source


@dataclass(frozen=True)
class Document:
    """Plain data and the origin of each part of it; `origins[()]` is the document's own."""

    data: dict[str, Any]
    origins: dict[KeyPath, Origin] = field(default_factory=dict)

    def origin(self, path: KeyPath) -> Origin:
        """Return the origin of `path`, or of the nearest part above it."""
        while path and path not in self.origins:
            path = path[:-1]
        return self.origins.get(path, Origin("the recipe"))

    def part(self, path: KeyPath) -> "Document":
        """Return the mapping at `path` as a document that knows its origins; an absent one is empty."""
        data: Any = self.data
        for key in path:
            data = data.get(key) or {}
        size = len(path)
        origins = {at[size:]: origin for at, origin in self.origins.items() if at[:size] == path}
        return Document(data, {(): self.origin(path), **origins})


def read_file(path: Path) -> Document:
    """Return the mapping in the YAML file `path`; raise `RecipeError` with file and line."""
    try:
        size = path.stat().st_size
        raw = b"" if size > MAX_BYTES else path.read_bytes()
    except OSError as error:
        raise RecipeError(f"{path}: cannot be read: {error.strerror or error}") from error
    if size > MAX_BYTES:
        raise RecipeError(f"{path}: {size} bytes; a recipe has at most {MAX_BYTES}")
    return read_text(_decode(raw, path), str(path))


def read_text(text: str, source: str) -> Document:
    """Return the mapping that the YAML `text` holds; `source` names it in errors."""
    value, origins = _Composer(source).compose(text)
    if value is None:
        raise RecipeError(f"{source}: the file is empty; a recipe is a mapping such as 'name: ...'")
    if not isinstance(value, dict):
        raise RecipeError(
            f"{origins[()]}: a recipe is a mapping of keys to values, not {describe_kind(value)}"
        )
    return Document(value, origins)


def read_value(text: str, source: str) -> Any:
    """Return the single value, of any kind, that the YAML `text` holds."""
    return _Composer(source).compose(text)[0]


def describe_kind(value: object) -> str:
    """Return what kind of YAML value this is, for error texts."""
    if value is None:
        return "null (nothing)"
    if isinstance(value, bool):
        return f"the boolean {str(value).lower()}"
    if isinstance(value, (int, float)):
        return f"the number {getattr(value, 'source_text', value)}"
    if isinstance(value, str):
        return f"the text '{value}'"
    return "a list" if isinstance(value, (list, tuple)) else "a mapping"


def _decode(raw: bytes, path: Path) -> str:
    if raw.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise RecipeError(f"{path}: written in UTF-16; save it as UTF-8")
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        raise RecipeError(
            f"{path}:{line}: byte {error.start} is not UTF-8 ({raw[error.start]:#04x}); "
            "save the file as UTF-8"
        ) from error


@dataclass(frozen=True)
class _Node:
    """A YAML node: `value` is a scalar, a list of nodes, or a list of (key, key node, node)."""

    value: Any
    line: int
    column: int


class _Composer:
    """Builds nodes from ruamel's events, then data from nodes."""

    def __init__(self, source: str) -> None:
        self._source = source
        self._anchors: dict[str, _Node | None] = {}
        self._origins: dict[KeyPath, Origin] = {}
        self._values = 0
        self._merges = 0
        self._lines: list[str] = []

    def compose(self, text: str) -> tuple[Any, dict[KeyPath, Origin]]:
        """Return the data of the one document in `text`, and the origins of its parts."""
        self._lines = text.splitlines()
        try:
            root = self._document(YAML(typ="safe", pure=True).parse(text))
        except MarkedYAMLError as error:
            raise self._syntax_error(error) from error
        except YAMLError as error:
            problem = getattr(error, "reason", None) or str(error).splitlines()[0]
            line = text.count("\n", 0, getattr(error, "position", 0)) + 1
            raise RecipeError(f"{self._source}:{line}: not valid YAML: {problem}") from error
        if root is None:
            return None, {(): Origin(self._source)}
        return self._build(root, (), root), self._origins

    def _document(self, events: Iterator[Event]) -> _Node | None:
        root: _Node | None = None
        for event in events:
            if isinstance(event, DocumentStartEvent):
                self._check_start(event, root)
                root = self._node(next(events), events, 0)
            elif isinstance(event, StreamEndEvent):
                break
        return root

    def _check_start(self, event: Any, earlier: _Node | None) -> None:
        if earlier is not None:
            raise self._error(event, "a second document starts here; a recipe is one document")
        if event.version is not None and tuple(event.version) != (1, 2):
            version = ".".join(str(part) for part in event.version)
            raise self._error(event, f"recipes are YAML 1.2, not {version}; remove this directive")

    def _node(self, event: Any, events: Iterator[Event], depth: int) -> _Node:
        if isinstance(event, AliasEvent):
            return self._alias(event)
        if depth > MAX_DEPTH:
            raise self._error(event, f"nested more than {MAX_DEPTH} levels deep")
        if event.anchor is not None:
            self._anchors[event.anchor] = None
        if isinstance(event, ScalarEvent):
            value: Any = self._scalar(event)
        else:
            self._check_tag(event)
            if isinstance(event, SequenceStartEvent):
                value = self._items(events, depth)
            elif isinstance(event, MappingStartEvent):
                value = _Pairs(self._pairs(events, depth))
            else:
                raise self._error(event, "a value is missing here")
        node = _Node(value, event.start_mark.line + 1, event.start_mark.column + 1)
        if event.anchor is not None:
            self._anchors[event.anchor] = node
        return node

    def _alias(self, event: Any) -> _Node:
        if event.anchor not in self._anchors:
            known = ", ".join(f"&{name}" for name in self._anchors) or "none"
            raise self._error(event, f"*{event.anchor} has no anchor above it (anchors: {known})")
        node = self._anchors[event.anchor]
        if node is None:
            raise self._error(event, f"*{event.anchor} is part of itself")
        return node

    def _items(self, events: Iterator[Event], depth: int) -> list[_Node]:
        items = []
        while not isinstance(event := next(events), SequenceEndEvent):
            items.append(self._node(event, events, depth + 1))
        return items

    def _pairs(self, events: Iterator[Event], depth: int) -> Iterator[tuple[str, _Node, _Node]]:
        while not isinstance(event := next(events), MappingEndEvent):
            key = event
            if isinstance(key, AliasEvent):
                target = self._alias(key)
                name, merges = target.value, False
                if not isinstance(name, str):
                    raise self._error(key, "a key must be text")
            elif isinstance(key, ScalarEvent):
                self._check_tag(key)
                name, merges = key.value, key.style is None and key.value == "<<"
                if key.anchor is not None:
                    at = key.start_mark
                    self._anchors[key.anchor] = _Node(name, at.line + 1, at.column + 1)
            else:
                raise self._error(key, "a key must be text, not a list or a mapping")
            at = key.start_mark
            key_node = _Node(merges, at.line + 1, at.column + 1)
            yield name, key_node, self._node(next(events), events, depth + 1)

    def _scalar(self, event: Any) -> Any:
        tag = event.tag
        if tag in (None, "!") or tag == _CORE + "str":
            if tag is not None or event.style is not None:
                return event.value
            try:
                return resolve_plain(event.value)
            except ValueError as error:
                raise self._error(event, str(error)) from error
        self._check_tag(event)
        return self._tagged(event, tag.removeprefix(_CORE))

    def _tagged(self, event: Any, kind: str) -> Any:
        try:
            value = resolve_plain(event.value)
            number = resolve_number(event.value)
        except ValueError as error:
            raise self._error(event, str(error)) from error
        fits = {
            "null": value is None,
            "bool": isinstance(value, bool),
            "int": isinstance(number, int),
            "float": number is not None,
        }
        if not fits.get(kind, False):
            raise self._error(event, f"'{event.value}' is not !!{kind}")
        if kind == "float":
            return type(number)(number) if isinstance(number, float) else float(event.value)
        return value

    def _check_tag(self, event: Any) -> None:
        tag = event.tag
        if tag is None or tag == "!":
            return
        kinds = _CORE_KINDS[type(event)]
        if not tag.startswith(_CORE) or tag.removeprefix(_CORE) not in kinds:
            raise self._error(
                event,
                f"the tag {tag.replace(_CORE, '!!')} is not allowed here; recipes hold plain values "
                f"only (allowed: {', '.join('!!' + kind for kind in kinds)})",
            )

    def _build(self, node: _Node, path: KeyPath, at: _Node) -> Any:
        self._values += 1
        if self._values > MAX_VALUES:
            raise RecipeError(
                f"{self._source}:{at.line}: more than {MAX_VALUES} values after expanding aliases"
            )
        self._origins[path] = Origin(self._source, at.line, at.column)
        if isinstance(node.value, _Pairs):
            pairs = self._merged(node.value)
            return {
                key: self._build(item, (*path, key), key_node)
                for key, (key_node, item) in pairs.items()
            }
        if isinstance(node.value, list):
            return [
                self._build(item, (*path, index), item) for index, item in enumerate(node.value)
            ]
        return node.value

    def _merged(self, pairs: "_Pairs") -> dict[str, tuple[_Node, _Node]]:
        own: dict[str, tuple[_Node, _Node]] = {}
        inherited: dict[str, tuple[_Node, _Node]] = {}
        for key, key_node, item in pairs:
            if key_node.value:
                for source in self._merge_sources(item, key_node):
                    for name, entry in self._merged(source).items():
                        inherited.setdefault(name, entry)
                continue
            if key in own:
                raise RecipeError(
                    f"{self._source}:{key_node.line}: the key '{key}' is already given in line "
                    f"{own[key][0].line}; keep one of the two"
                )
            own[key] = (key_node, item)
        return {**{k: v for k, v in inherited.items() if k not in own}, **own}

    def _merge_sources(self, node: _Node, key: _Node) -> list["_Pairs"]:
        self._merges += 1
        if self._merges > MAX_MERGES:
            raise RecipeError(f"{self._source}:{key.line}: more than {MAX_MERGES} merged mappings")
        sources = node.value if type(node.value) is list else [node]
        for source in sources:
            if not isinstance(source.value, _Pairs):
                raise RecipeError(
                    f"{self._source}:{key.line}: '<<' takes a mapping or a list of mappings"
                )
        return [source.value for source in sources]

    def _error(self, event: Any, message: str) -> RecipeError:
        return RecipeError(f"{self._source}:{event.start_mark.line + 1}: {message}")

    def _syntax_error(self, error: Any) -> RecipeError:
        mark = error.problem_mark or error.context_mark
        line = mark.line + 1 if mark is not None else 1
        problem = str(error.problem or error.context or error)
        if "'\\t'" in problem or "\\t" in problem:
            problem = "a tab character; YAML indents with spaces"
        elif error.context_mark is not None and error.context_mark.line + 1 != line:
            problem = f"{problem} ({error.context}, from line {error.context_mark.line + 1})"
        shown = self._lines[line - 1].strip() if 0 < line <= len(self._lines) else ""
        tail = f": {shown[:80]}" if shown else ""
        return RecipeError(f"{self._source}:{line}: not valid YAML: {problem}{tail}")


class _Pairs(list[tuple[str, _Node, _Node]]):
    """The entries of a mapping in the order they were written."""


_CORE = "tag:yaml.org,2002:"
_CORE_KINDS: dict[type, tuple[str, ...]] = {
    ScalarEvent: ("str", "int", "float", "bool", "null"),
    SequenceStartEvent: ("seq",),
    MappingStartEvent: ("map",),
}
