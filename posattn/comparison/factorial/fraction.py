"""Regular fractions of two-level designs: generators, defining relation, resolution, aliases.

The first level of a factor counts as -1, the second as +1. A generator `d: a*b*c` keeps the
combinations in which the sign of d is the product of those of a, b and c, so that the word a*b*c*d is +1
throughout. Words multiply to further words (a factor twice cancels out); the effect E cannot be
told from E times any word (Box, Hunter and Hunter, Statistics for Experimenters, chapter 6).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

Effect = frozenset[str]
"""The factors of an effect: one of a main effect, two of an interaction."""


@dataclass(frozen=True)
class Fraction:
    """Which combinations of two-level factors are run, and what cannot be told apart for it.

    `words` is the defining relation: sets of factors whose signs multiply to the given sign.
    """

    factors: tuple[str, ...]
    generators: Mapping[str, str]
    words: tuple[tuple[Effect, int], ...]

    @property
    def resolution(self) -> int:
        """Return the length of the shortest word: 3 hides main effects behind interactions."""
        return min(len(word) for word, _ in self.words)

    def keeps(self, signs: Mapping[str, int]) -> bool:
        """Return whether the combination with these signs is run."""
        return all(product(signs, word) == sign for word, sign in self.words)

    def aliases(self, effect: Effect) -> list[tuple[Effect, int]]:
        """Return the effects that cannot be told from this one, with signs, simplest first."""
        found = [(effect ^ word, sign) for word, sign in self.words]
        return sorted(found, key=lambda item: (len(item[0]), self._places(item[0])))

    def describe(self, effect: Effect) -> str:
        """Return an effect and its aliases: `a = b*c`."""
        others = [f"{'-' * (sign < 0)}{self.text(other)}" for other, sign in self.aliases(effect)]
        return " = ".join([self.text(effect), *others])

    def text(self, effect: Effect) -> str:
        """Return the factors of an effect, in their order: `a*b`."""
        return "*".join(self.factors[place] for place in self._places(effect))

    def _places(self, effect: Effect) -> list[int]:
        return sorted(self.factors.index(name) for name in effect)


def product(signs: Mapping[str, int], effect: Effect) -> int:
    """Return the product of the signs of an effect's factors."""
    result = 1
    for name in effect:
        result *= signs[name]
    return result


def half(factors: Sequence[str]) -> dict[str, str]:
    """Return the generator of the half of highest resolution: the last factor from all others.

    Its sign is such that the combination of all first levels is run.
    """
    sign = "" if len(factors) % 2 == 0 else "-"
    return {factors[-1]: sign + "*".join(factors[:-1])}


def make_fraction(factors: Sequence[str], generators: Mapping[str, str]) -> Fraction:
    """Return the fraction; raise ValueError for generators that make none, with the aliases."""
    words: list[tuple[Effect, int]] = []
    for generated, text in generators.items():
        word, sign = _word(factors, generated, text, generators)
        words += [(word, sign), *((word ^ other, sign * also) for other, also in words)]
    fraction = Fraction(tuple(factors), dict(generators), tuple(words))
    short = [word for word, _ in words if len(word) < 3]
    if short:
        raise ValueError(f"this fraction cannot tell main effects apart: {_confounded(fraction)}")
    return fraction


def _word(
    factors: Sequence[str], generated: str, text: str, generators: Mapping[str, str]
) -> tuple[Effect, int]:
    known = ", ".join(factors)
    if generated not in factors:
        raise ValueError(f"'{generated}' is no factor (factors: {known})")
    sign = -1 if text.strip().startswith("-") else 1
    names = [name.strip() for name in text.strip().removeprefix("-").split("*")]
    for name in names:
        if name not in factors:
            raise ValueError(
                f"'{name}' is no factor (factors: {known}); a generator is written as a product, such "
                "as d: a*b*c or d: -a*b*c"
            )
        if name in generators:
            raise ValueError(f"'{name}' is generated itself; use factors that no generator makes")
    if len(set(names)) < len(names):
        raise ValueError(f"'{text}' names a factor twice, where it cancels out")
    return frozenset({generated, *names}), sign


def _confounded(fraction: Fraction) -> str:
    pairs = [word for word, _ in fraction.words if len(word) == 2]
    shown = [
        " = ".join(
            fraction.text(frozenset({name})) for name in sorted(w, key=fraction.factors.index)
        )
        for w in pairs
    ]
    return f"{', '.join(dict.fromkeys(shown))}. Use generators of more factors, or run all combinations"
