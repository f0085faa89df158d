"""Fractions: what is kept, what is aliased with what, and what is refused."""

from itertools import combinations, product

import numpy as np
import pytest

from posattn.comparison.factorial.fraction import Fraction, half, make_fraction


def columns(fraction: Fraction) -> dict[str, np.ndarray]:
    """Return the sign columns of every effect over the runs kept, multiplied out run by run."""
    names = fraction.factors
    runs = [dict(zip(names, s, strict=True)) for s in product((-1, 1), repeat=len(names))]
    runs = [signs for signs in runs if fraction.keeps(signs)]
    found = {}
    for size in range(1, len(names) + 1):
        for chosen in combinations(names, size):
            found["*".join(chosen)] = np.array([np.prod([run[n] for n in chosen]) for run in runs])
    return found


def test_half_of_four_has_resolution_four_and_holds_the_reference() -> None:
    fraction = make_fraction("abcd", half("abcd"))
    assert fraction.generators == {"d": "a*b*c"}
    assert fraction.resolution == 4
    assert fraction.keeps(dict.fromkeys("abcd", -1))
    assert fraction.describe(frozenset("a")) == "a = b*c*d"
    assert fraction.describe(frozenset("ab")) == "a*b = c*d"


def test_half_of_three_hides_main_effects_behind_interactions_with_a_sign() -> None:
    fraction = make_fraction("abc", half("abc"))
    assert fraction.generators == {"c": "-a*b"}
    assert fraction.resolution == 3
    assert fraction.keeps(dict.fromkeys("abc", -1))
    assert fraction.describe(frozenset("a")) == "a = -b*c"


@pytest.mark.parametrize(
    ("factors", "generators"),
    [
        ("abcd", {"d": "a*b*c"}),
        ("abcd", {"d": "-a*b*c"}),
        ("abcde", {"d": "a*b", "e": "a*c"}),
        ("abcdef", {"e": "a*b*c", "f": "-b*c*d"}),
    ],
)
def test_aliases_are_the_effects_whose_sign_columns_agree(
    factors: str, generators: dict[str, str]
) -> None:
    fraction = make_fraction(tuple(factors), generators)
    by_loop = columns(fraction)
    assert len(by_loop[factors[0]]) == 2 ** (len(factors) - len(generators))
    for name, column in by_loop.items():
        effect = frozenset(name.split("*"))
        stated = {fraction.text(other): sign for other, sign in fraction.aliases(effect)}
        same = {o: 1 for o, c in by_loop.items() if o != name and np.array_equal(c, column)}
        opposite = {o: -1 for o, c in by_loop.items() if np.array_equal(c, -column)}
        stated.pop("", None)  # a word itself is constant
        assert stated == {**same, **opposite}


def test_aliases_are_listed_simplest_first() -> None:
    fraction = make_fraction(tuple("abcde"), {"d": "a*b", "e": "a*c"})
    assert fraction.resolution == 3
    assert fraction.describe(frozenset("a")) == "a = b*d = c*e = a*b*c*d*e"


@pytest.mark.parametrize(
    ("generators", "said"),
    [
        ({"c": "a"}, "cannot tell main effects apart: a = c"),
        ({"c": "a*b", "d": "a*b"}, "cannot tell main effects apart: c = d"),
        ({"c": "a*x"}, "'x' is no factor .factors: a, b, c, d."),
        ({"x": "a*b"}, "'x' is no factor"),
        ({"c": "a*a"}, "names a factor twice"),
        ({"c": "a*b", "d": "a*c"}, "'c' is generated itself"),
        ({"c": "c*b"}, "'c' is generated itself"),
    ],
)
def test_generators_that_make_no_fraction_are_refused(
    generators: dict[str, str], said: str
) -> None:
    with pytest.raises(ValueError, match=said):
        make_fraction(tuple("abcd"), generators)
