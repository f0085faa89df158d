"""The interpreted backend computes what eager computes, or refuses with reasons."""

import pytest

from posattn.testing import Check, backend_checks

CASES = [pytest.param(check, id=str(check)) for check in backend_checks("triton")]


@pytest.mark.parametrize("check", CASES)
def test_the_backend_keeps_its_promise(check: Check) -> None:
    check()
