"""Every registered mechanism, with every set of options worth telling apart, keeps its promises."""

import pytest

from posattn.mechanisms import names
from posattn.testing import Check, mechanism_checks

from .variants import variants

CASES = [
    pytest.param(check, id=f"{name}, {label}: {check}")
    for name, sets in variants.items()
    for label, options in sets.items()
    for check in mechanism_checks(name, options)
]


@pytest.mark.parametrize("check", CASES)
def test_the_mechanism_keeps_its_promise(check: Check) -> None:
    check()


def test_every_registered_mechanism_is_tried() -> None:
    assert sorted(variants) == names()
