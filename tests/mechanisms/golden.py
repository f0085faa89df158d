"""Numbers that the original implementations gave, written by tools/golden_biases.py."""

import json
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parents[1] / "golden"


def golden(name: str) -> dict[str, Any]:
    """Return the contents of a golden file, which name their source under "source"."""
    found: dict[str, Any] = json.loads((FOLDER / f"{name}.json").read_text(encoding="utf-8"))
    return found
