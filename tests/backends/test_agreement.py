"""Every registered backend computes what eager computes, or refuses with reasons."""

import pytest

from posattn.backends import names
from posattn.testing import Check, backend_checks

CASES = [
    pytest.param(check, id=f"{name}: {check}") for name in names() for check in backend_checks(name)
]


@pytest.mark.parametrize("check", CASES)
def test_the_backend_keeps_its_promise(check: Check) -> None:
    check()
