"""Effects as weighted sums of arms: main effects and interactions of two factors.

    effect of level a of A         = mean over settings of  y(a, .) - y(a_1, .)
    interaction of a of A, b of B  = mean over settings of
                                     1/2 ([y(a, b) - y(a_1, b)] - [y(a, b_1) - y(a_1, b_1)])

a_1 and b_1 are the first levels, settings those of the other factors in which all combinations named were
run. With two levels and all combinations these are the differences of means of effects coding
(-1, +1). In a fraction they are differences of means by sign, each with its aliases.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from posattn.comparison.factorial.design import Design, Levels, all_combinations, signs_of
from posattn.comparison.factorial.fraction import Effect, product

Weights = dict[str, float]


@dataclass(frozen=True)
class EffectWeights:
    """One effect: which levels against which, and the weight of each arm; they sum to zero."""

    name: str
    levels: Levels
    references: Levels
    weights: Mapping[str, float]
    settings: int
    aliases: str | None = None


def effect_weights(design: Design) -> tuple[list[EffectWeights], dict[str, str]]:
    """Return every effect that the design gives, and the reason for each that it does not."""
    if design.fraction is not None:
        return _by_sign(design), {}
    found, missing = [], {}
    for effect in design.effects():
        names = [name for name in design.factors if name in effect]
        others = {name: design.factors[name][1:] for name in names}
        for levels in all_combinations(others):
            made = _matched(design, levels)
            if made.settings:
                found.append(made)
            else:
                missing[made.name] = "no setting has all the combinations that it needs"
    return found, missing


def effect_name(levels: Levels) -> str:
    """Return the name of an effect: `c2p-off`, or `c2p-off*emd-off` of an interaction."""
    return "*".join(f"{factor}-{level}" for factor, level in levels.items())


def _matched(design: Design, levels: Levels) -> EffectWeights:
    """Return the effect averaged over settings in which every combination it needs was run."""
    arms = {tuple(cell[name] for name in design.factors): arm for arm, cell in design.cells.items()}
    references = {name: design.factors[name][0] for name in levels}
    corners = all_combinations({name: (references[name], level) for name, level in levels.items()})
    rest = {name: known for name, known in design.factors.items() if name not in levels}
    settings: list[Weights] = []
    for setting in all_combinations(rest):
        weights: Weights = {}
        for corner in corners:
            arm = arms.get(tuple({**setting, **corner}[name] for name in design.factors))
            if arm is None:
                break
            signs = [1 if corner[name] == level else -1 for name, level in levels.items()]
            weights[arm] = (signs[0] if len(signs) == 1 else signs[0] * signs[1]) / len(levels)
        else:
            settings.append(weights)
    total = {arm: w / len(settings) for weights in settings for arm, w in weights.items()}
    return EffectWeights(effect_name(levels), levels, references, total, len(settings))


def _by_sign(design: Design) -> list[EffectWeights]:
    fraction = design.fraction
    assert fraction is not None
    found, seen = [], set[Effect]()
    for effect in design.effects():
        if effect in seen:
            continue
        seen |= {effect, *(other for other, _ in fraction.aliases(effect))}
        levels = {name: known[1] for name, known in design.factors.items() if name in effect}
        signs = {
            arm: product(signs_of(design.factors, cell), effect)
            for arm, cell in design.cells.items()
        }
        weights = {arm: 2 * sign / len(signs) for arm, sign in signs.items()}
        references = {name: design.factors[name][0] for name in levels}
        aliases = fraction.describe(effect)
        name = effect_name(levels)
        found.append(EffectWeights(name, levels, references, weights, 1, aliases))
    return found
