"""Tests of the Triton kernels, which run in Triton's interpreter: their own pytest call sets it up.

`TRITON_INTERPRET=1 pytest -m triton tests/triton`; the variable is read when Triton is imported, and an
interpreted backend would take part, slowly, in every other test that asks all backends.
"""

from collections.abc import Sequence
from pathlib import Path

import pytest

HERE = Path(__file__).parent


def pytest_collection_modifyitems(items: Sequence[pytest.Item]) -> None:
    """Mark all tests of this folder."""
    for item in items:
        if HERE in item.path.parents:
            item.add_marker("triton")
