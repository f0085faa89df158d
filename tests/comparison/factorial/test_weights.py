"""Effects as weights of arms, against explicit loops and against least squares."""

from collections.abc import Mapping
from itertools import product

import numpy as np
import pytest

from posattn.comparison.factorial.design import (
    Design,
    LeftOut,
    all_combinations,
    cell_name,
    signs_of,
)
from posattn.comparison.factorial.fraction import half, make_fraction
from posattn.comparison.factorial.weights import EffectWeights, effect_weights

TWO = {"a": ("no", "yes"), "b": ("no", "yes"), "c": ("no", "yes")}


def full(factors: Mapping[str, tuple[str, ...]]) -> Design:
    return Design(factors, {cell_name(c): c for c in all_combinations(factors)}, {})


def scores_of(design: Design, seed: int = 0) -> dict[str, float]:
    random = np.random.default_rng(seed)
    return {arm: float(random.normal()) for arm in design.cells}


def value(effect: EffectWeights, scores: Mapping[str, float]) -> float:
    return sum(weight * scores[arm] for arm, weight in effect.weights.items())


def by_name(design: Design) -> dict[str, EffectWeights]:
    return {effect.name: effect for effect in effect_weights(design)[0]}


def test_main_effects_are_differences_of_means_by_loop() -> None:
    design = full(TWO)
    scores = scores_of(design)
    for name in TWO:
        with_it = [s for arm, s in scores.items() if design.cells[arm][name] == "yes"]
        without = [s for arm, s in scores.items() if design.cells[arm][name] == "no"]
        found = by_name(design)[f"{name}-yes"]
        assert value(found, scores) == pytest.approx(np.mean(with_it) - np.mean(without))
        assert found.settings == 4


def test_interactions_are_half_the_difference_of_two_effects_by_loop() -> None:
    design = full(TWO)
    scores = scores_of(design)
    by_levels = {tuple(cell.values()): scores[arm] for arm, cell in design.cells.items()}
    expected = 0.0
    for c in ("no", "yes"):
        effect_with = by_levels["yes", "yes", c] - by_levels["no", "yes", c]
        effect_without = by_levels["yes", "no", c] - by_levels["no", "no", c]
        expected += 0.5 * (effect_with - effect_without) / 2
    assert value(by_name(design)["a-yes*b-yes"], scores) == pytest.approx(expected)


def test_effects_are_twice_the_coefficients_of_least_squares_in_effects_coding() -> None:
    design = full(TWO)
    scores = scores_of(design, 3)
    terms = [("a",), ("b",), ("c",), ("a", "b"), ("a", "c"), ("b", "c")]
    rows = [signs_of(TWO, cell) for cell in design.cells.values()]
    matrix = np.array([[1.0, *(np.prod([s[n] for n in t]) for t in terms)] for s in rows])
    solution = np.linalg.lstsq(matrix, np.array(list(scores.values())), rcond=None)[0]
    found = by_name(design)
    for term, coefficient in zip(terms, solution[1:], strict=True):
        name = "*".join(f"{factor}-yes" for factor in term)
        assert value(found[name], scores) == pytest.approx(2 * coefficient)


def test_each_level_of_more_than_two_is_taken_against_the_first() -> None:
    factors = {"size": ("s", "m", "l"), "b": ("no", "yes")}
    design = full(factors)
    scores = scores_of(design, 1)
    at = {tuple(cell.values()): scores[arm] for arm, cell in design.cells.items()}
    found = by_name(design)
    assert list(found) == ["size-m", "size-l", "b-yes", "size-m*b-yes", "size-l*b-yes"]
    large = np.mean([at["l", b] - at["s", b] for b in ("no", "yes")])
    assert value(found["size-l"], scores) == pytest.approx(large)
    interaction = 0.5 * ((at["l", "yes"] - at["s", "yes"]) - (at["l", "no"] - at["s", "no"]))
    assert value(found["size-l*b-yes"], scores) == pytest.approx(interaction)


def test_three_level_main_effects_agree_with_least_squares_on_dummies() -> None:
    factors = {"size": ("s", "m", "l"), "b": ("no", "yes")}
    design = full(factors)
    scores = scores_of(design, 2)
    cells = list(design.cells.values())
    dummies = [[1, c["size"] == "m", c["size"] == "l", c["b"] == "yes"] for c in cells]
    solved = np.linalg.lstsq(
        np.array(dummies, dtype=float), np.array(list(scores.values())), rcond=None
    )[0]
    found = by_name(design)
    values = [value(found[name], scores) for name in ("size-m", "size-l", "b-yes")]
    assert values == pytest.approx(list(solved[1:]))


def test_impossible_combinations_leave_effects_over_the_settings_that_are_there() -> None:
    cells = {n: c for n, c in full(TWO).cells.items() if (c["a"], c["b"]) != ("yes", "yes")}
    left_out = {n: LeftOut(c, "x") for n, c in full(TWO).cells.items() if n not in cells}
    design = Design(TWO, cells, left_out)
    scores = scores_of(design, 4)
    at = {tuple(cell.values()): scores[arm] for arm, cell in cells.items()}
    found, missing = effect_weights(design)
    named = {effect.name: effect for effect in found}
    a = np.mean([at["yes", "no", c] - at["no", "no", c] for c in ("no", "yes")])
    assert value(named["a-yes"], scores) == pytest.approx(a)
    assert (named["a-yes"].settings, named["c-yes"].settings) == (2, 3)
    assert list(missing) == ["a-yes*b-yes"]


@pytest.mark.parametrize("generators", [half("abcd"), {"d": "-a*b*c"}, {"c": "a*b", "d": "-b"}])
def test_an_effect_of_a_fraction_is_the_sum_of_its_aliases(generators: dict[str, str]) -> None:
    names = tuple("abcd")
    if generators.get("d") == "-b":
        with pytest.raises(ValueError, match="main effects apart"):
            make_fraction(names, generators)
        return
    fraction = make_fraction(names, generators)
    factors = dict.fromkeys(names, ("no", "yes"))
    cells = {
        cell_name(c): c for c in all_combinations(factors) if fraction.keeps(signs_of(factors, c))
    }
    design = Design(factors, cells, {}, fraction)
    random = np.random.default_rng(5)
    truth = {
        frozenset(n for n, on in zip(names, chosen, strict=True) if on): random.normal()
        for chosen in product((False, True), repeat=4)
    }
    scores = {
        arm: sum(
            size / 2 * np.prod([signs_of(factors, c)[n] for n in e]) for e, size in truth.items()
        )
        for arm, c in cells.items()
    }
    found, missing = effect_weights(design)
    assert missing == {}
    assert len(found) == 4 + 3
    for effect in found:
        of = frozenset(effect.levels)
        expected = truth[of] + sum(sign * truth[other] for other, sign in fraction.aliases(of))
        assert value(effect, scores) == pytest.approx(expected)
        assert effect.aliases == fraction.describe(of)
