"""Plain scalars of the YAML 1.2 core schema: what a word without quotes means.

Source: YAML 1.2.2, section 10.3.2. `yes`, `no`, `on`, `off`, `1:30`, `1_000` and dates are text;
`1e-4`, `1E5` and `12e3` are floats. One deviation: `010` is refused, because YAML 1.1 reads it as 8,
YAML 1.2 as 10, and whoever wrote it may have meant either.
"""

import math
import re

_NULL = {"", "~", "null", "Null", "NULL"}
_TRUE = {"true", "True", "TRUE"}
_FALSE = {"false", "False", "FALSE"}
_INT = re.compile(r"[-+]?[0-9]+")
_OCTAL = re.compile(r"0o[0-7]+")
_HEX = re.compile(r"0x[0-9a-fA-F]+")
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?")
_INFINITY = re.compile(r"[-+]?\.(inf|Inf|INF)")
_NAN = {".nan", ".NaN", ".NAN"}
_LEADING_ZERO = re.compile(r"[-+]?0[0-9]+")
_LONGEST_INT = 4000

Scalar = None | bool | int | float | str


class SourceInt(int):
    """An int that remembers how it was written, for fields that want text."""

    source_text: str

    def __new__(cls, value: int, source_text: str = "") -> "SourceInt":
        """Return `value`, with its spelling."""
        number = super().__new__(cls, value)
        number.source_text = source_text or int.__repr__(number)
        return number


class SourceFloat(float):
    """A float that remembers how it was written, for fields that want text."""

    source_text: str

    def __new__(cls, value: float, source_text: str = "") -> "SourceFloat":
        """Return `value`, with its spelling."""
        number = super().__new__(cls, value)
        number.source_text = source_text or float.__repr__(number)
        return number


def resolve_plain(text: str) -> Scalar:
    """Return the value of a scalar without quotes; raise `ValueError` for `010` and oversized ints."""
    if text in _NULL:
        return None
    if text in _TRUE:
        return True
    if text in _FALSE:
        return False
    number = resolve_number(text)
    return text if number is None else number


def resolve_number(text: str) -> SourceInt | SourceFloat | None:
    """Return the number that `text` spells in the core schema, or None if it spells none."""
    if _LEADING_ZERO.fullmatch(text):
        sign, digits = text.rstrip("0123456789"), text.lstrip("+-")
        raise ValueError(
            f"the number {text} begins with a zero, which YAML versions read differently; write "
            f"{sign}{int(digits)} for a decimal, 0o{digits.lstrip('0') or '0'} for an octal number, "
            f'or "{text}" for text'
        )
    if len(text) > _LONGEST_INT and text[-1:].isdigit():
        raise ValueError(f"a number of {len(text)} characters; the limit is {_LONGEST_INT}")
    if _INT.fullmatch(text):
        return SourceInt(int(text), text)
    if _OCTAL.fullmatch(text):
        return SourceInt(int(text, 8), text)
    if _HEX.fullmatch(text):
        return SourceInt(int(text, 16), text)
    if _INFINITY.fullmatch(text):
        return SourceFloat(-math.inf if text[0] == "-" else math.inf, text)
    if text in _NAN:
        return SourceFloat(math.nan, text)
    if _FLOAT.fullmatch(text):
        return SourceFloat(float(text), text)
    return None


def plain(value: object) -> object:
    """Return `value` with every number stripped of its spelling, down through lists and mappings."""
    if isinstance(value, SourceInt):
        return int(value)
    if isinstance(value, SourceFloat):
        return float(value)
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    return value
