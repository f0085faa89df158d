"""Whether two stored files say the same: numbers up to rounding, all else to the letter."""

import json
import math
import re
from collections.abc import Iterator
from itertools import zip_longest
from pathlib import Path
from typing import Any

from posattn.recipe.difference import ABSENT, flatten

TOLERANCE = 1e-9
"""Relative; sums may be taken in another order on another machine."""

NUMBER = re.compile(r"([-+]?\d+\.\d+(?:[eE][-+]?\d+)?|[-+]?\d+(?:[eE][-+]?\d+)?)")
LONGEST, CONTEXT = 60, 15
"""Characters of a value in a message, and how many of them stand before where it differs."""


def compare_json(stored: Path, made: Path, ignored: tuple[str, ...] = ()) -> Iterator[str]:
    """Yield every dotted path at which two JSON objects differ, with both values."""
    contents = [json.loads(path.read_text(encoding="utf-8")) for path in (stored, made)]
    there, now = ({k: v for k, v in flatten(c).items() if k not in ignored} for c in contents)
    for path in dict.fromkeys([*there, *now]):
        one, other = there.get(path, ABSENT), now.get(path, ABSENT)
        if not _same(one, other):
            yield f"{path}: {_words(one, other)}"


def compare_text(stored: Path, made: Path) -> Iterator[str]:
    """Yield every line at which two text files differ, with both lines."""
    there, now = (path.read_text(encoding="utf-8").splitlines() for path in (stored, made))
    for number, (one, other) in enumerate(zip_longest(there, now, fillvalue=ABSENT), start=1):
        if not _same_line(one, other):
            yield f"line {number}: {_words(one, other)}"


def _same(one: Any, other: Any) -> bool:
    numbers = isinstance(one, float | int) and isinstance(other, float | int)
    if numbers and not isinstance(one, bool) and not isinstance(other, bool):
        return math.isclose(one, other, rel_tol=TOLERANCE, abs_tol=TOLERANCE)
    return type(one) is type(other) and bool(one == other)


def _same_line(one: Any, other: Any) -> bool:
    if one == other:
        return True
    if one is ABSENT or other is ABSENT:
        return False
    there, now = NUMBER.split(one), NUMBER.split(other)
    if len(there) != len(now) or there[::2] != now[::2]:
        return False
    pairs = zip(there[1::2], now[1::2], strict=True)
    return all(_same(float(a), float(b)) for a, b in pairs)


def _words(one: Any, other: Any) -> str:
    start = 0
    if isinstance(one, str) and isinstance(other, str):
        common = next((i for i, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), 0)
        start = max(0, common - CONTEXT)
    return f"the folder has {_shown(one, start)}, recomputed is {_shown(other, start)}"


def _shown(value: Any, start: int) -> str:
    if value is ABSENT:
        return "nothing"
    if isinstance(value, str):
        value = ("..." if start else "") + value[start:]
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}..."
