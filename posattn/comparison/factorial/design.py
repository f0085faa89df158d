"""`Design`: the factors of a study, its combinations as arms, and what was left out with why."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product as combinations_of
from typing import Any

from posattn.comparison.factorial.fraction import Effect, Fraction

Levels = Mapping[str, str]
"""One combination: the level of each factor."""


@dataclass(frozen=True)
class LeftOut:
    """A combination that the study does not run, with the reason."""

    levels: Levels
    reason: str


@dataclass(frozen=True)
class Design:
    """Which combinations of levels are arms. The first level of a factor is its reference."""

    factors: Mapping[str, tuple[str, ...]]
    cells: Mapping[str, Levels]
    left_out: Mapping[str, LeftOut]
    fraction: Fraction | None = None

    def aliases(self) -> list[str]:
        """Return what a fraction cannot tell apart, for main effects and pairs; else nothing."""
        if self.fraction is None:
            return []
        lines, seen = [], set[Effect]()
        for effect in self.effects():
            if effect not in seen:
                lines.append(self.fraction.describe(effect))
                seen |= {effect, *(other for other, _ in self.fraction.aliases(effect))}
        return lines

    def effects(self) -> list[Effect]:
        """Return the main effects and the pairs of factors, in the order of the factors."""
        names = list(self.factors)
        mains = [frozenset({name}) for name in names]
        return mains + [
            frozenset({one, other}) for i, one in enumerate(names) for other in names[i + 1 :]
        ]

    def to_json(self, refused: Mapping[str, str | None]) -> dict[str, Any]:
        """Return the design as it stands in plan.json; `refused` is by combination left out."""
        found: dict[str, Any] = {
            "factors": {name: list(levels) for name, levels in self.factors.items()},
            "cells": {arm: dict(levels) for arm, levels in self.cells.items()},
        }
        if self.left_out:
            found["left_out"] = {
                arm: {"reason": item.reason, "refused": refused[arm]}
                for arm, item in self.left_out.items()
            }
        if self.fraction is not None:
            found["generators"] = dict(self.fraction.generators)
            found["resolution"] = self.fraction.resolution
            found["aliases"] = self.aliases()
        return found


def cell_name(levels: Levels) -> str:
    """Return the arm's name of a combination: `c2p-on_p2c-off`."""
    return "_".join(f"{factor}-{level}" for factor, level in levels.items())


def all_combinations(factors: Mapping[str, Sequence[str]]) -> list[dict[str, str]]:
    """Return every combination of levels, the last factor changing fastest."""
    return [
        dict(zip(factors, chosen, strict=True)) for chosen in combinations_of(*factors.values())
    ]


def signs_of(factors: Mapping[str, Sequence[str]], levels: Levels) -> dict[str, int]:
    """Return -1 for the first level of a two-level factor and +1 for its second."""
    return {name: -1 if levels[name] == known[0] else 1 for name, known in factors.items()}


def matches(levels: Levels, wanted: Levels) -> bool:
    """Return whether a combination has all the levels wanted."""
    return all(levels[factor] == level for factor, level in wanted.items())
