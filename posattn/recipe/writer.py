"""Plain data to YAML 1.2 text that `reader` reads back as the same data."""

import json
import math
import re
from typing import Any

from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined, to_jsonable_python

from posattn.recipe.scalars import resolve_plain

_PLAIN = re.compile(r"[A-Za-z_./][A-Za-z0-9_./+ -]*")
_WIDTH = 100


def write_yaml(data: dict[str, Any]) -> str:
    """Return `data` (mappings, lists, scalars) as block YAML; short lists stay on one line."""
    return "".join(f"{line}\n" for line in _mapping(data, ""))


def plain_default(field: FieldInfo) -> Any:
    """Return the default of a config field as plain data; a field that must be given has None."""
    default = field.get_default(call_default_factory=True, validated_data={})
    return None if default is PydanticUndefined else to_jsonable_python(default)


def _mapping(data: dict[str, Any], indent: str) -> list[str]:
    lines: list[str] = []
    for key, value in data.items():
        lines.extend(_entry(f"{indent}{_scalar(key)}:", value, f"{indent}  "))
    return lines


def _entry(head: str, value: Any, indent: str) -> list[str]:
    flow = _flow(value)
    if not isinstance(value, (dict, list, tuple)) or not value:
        return [f"{head} {flow}"]
    holds_parts = any(isinstance(item, (dict, list, tuple)) for item in value)
    if isinstance(value, dict):
        return [head, *_mapping(value, indent)]
    if not holds_parts and len(head) + len(flow) < _WIDTH:
        return [f"{head} {flow}"]
    lines = [head]
    for item in value:
        below = _mapping(item, f"{indent}  ") if isinstance(item, dict) and item else None
        if below is None:
            lines.append(f"{indent}- {_flow(item)}")
        else:
            lines.extend([f"{indent}- {below[0].lstrip()}", *below[1:]])
    return lines


def _flow(value: Any) -> str:
    if isinstance(value, dict):
        return "{" + ", ".join(f"{_scalar(k)}: {_flow(v)}" for k, v in value.items()) + "}"
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(_flow(item) for item in value) + "]"
    return _scalar(value)


def _scalar(value: Any) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int):
        return int.__repr__(value)
    if isinstance(value, float):
        return _float(value)
    if not isinstance(value, str):
        raise TypeError(f"a recipe cannot hold a {type(value).__name__}: {value!r}")
    return value if _is_plain(value) else _quoted(value)


def _float(value: float) -> str:
    if math.isfinite(value):
        return float.__repr__(value)
    return ".nan" if math.isnan(value) else (".inf" if value > 0 else "-.inf")


def _is_plain(text: str) -> bool:
    if not _PLAIN.fullmatch(text) or text != text.strip():
        return False
    try:
        return isinstance(resolve_plain(text), str)
    except ValueError:
        return False


def _quoted(text: str) -> str:
    """Return `text` in double quotes; JSON strings are YAML, but for three kinds of character."""
    quoted = json.dumps(text, ensure_ascii=False)
    return re.sub(
        "[\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff\ud800-\udfff]",
        lambda match: f"\\u{ord(match[0]):04x}",
        quoted,
    )
