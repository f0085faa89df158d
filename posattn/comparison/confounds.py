"""Confounds: whether a difference between arms could come from something else than what is studied.

A recipe has four aspects: architecture (encoder, decoder, head), objective, data and training. An arm that
differs from the baseline in two of them says nothing about either, unless other arms tell them apart:
arms with every part of the difference, or combinations of factors that change one aspect each. A
well-known script compares BERT under masking of tokens with DeBERTa under masking of spans.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

from posattn.comparison.control import LABELS, PER_SEED, Finding
from posattn.comparison.differences import under
from posattn.comparison.factorial import Design
from posattn.comparison.wording import listed
from posattn.errors import ControlError
from posattn.recipe.difference import flatten

ASPECTS = {
    "encoder": "architecture",
    "decoder": "architecture",
    "head": "architecture",
    "objective": "objective",
    "data": "data",
    "train": "training",
}
RULE = "no arm mixes architecture, objective, data and training"

Components = Mapping[str, str]
"""The content of each part of a recipe: of `encoder.mechanism`, `decoder`, `objective`, ..."""


@dataclass(frozen=True)
class Rules:
    """What a study says of its differences: the baseline, the factors, and what makes up for what."""

    baseline: str
    varies: Sequence[str]
    compensations: Mapping[str, str]
    confounded: str
    design: Design | None = None
    factor_paths: Mapping[str, Sequence[str]] | None = None


@dataclass(frozen=True)
class Confounds:
    """What a study mixes: aspects by arm, with the declared reason; parts of the architecture in words."""

    reason: str
    arms: Mapping[str, tuple[str, ...]]
    mixed: tuple[str, ...]

    def to_json(self) -> dict[str, Any]:
        """Return what stands in plan.json, nothing where nothing is mixed."""
        arms = {arm: list(aspects) for arm, aspects in self.arms.items()}
        found: dict[str, Any] = {}
        if arms:
            found |= {"reason": self.reason, "arms": arms}
        if self.mixed:
            found["mixed"] = list(self.mixed)
        return found

    def finding(self) -> Finding:
        """Return the rule of control."""
        if not self.arms:
            unused = "; declared as confounded, but no arm is" if self.reason else ""
            return Finding(RULE, True, f"each arm differs from the baseline in one at most{unused}")
        parts = [f"{arm} in {listed(aspects)}" for arm, aspects in self.arms.items()]
        detail = f"differs from the baseline: {'; '.join(parts)}; declared: {self.reason}"
        return Finding(RULE, False, detail, expected=True)


def find_confounds(recipes: Mapping[str, Mapping[str, Any]], rules: Rules) -> Confounds:
    """Return what the arms mix; raise `ControlError`, with how to separate it, if undeclared."""
    parts = {arm: components(recipe, rules.compensations) for arm, recipe in recipes.items()}
    mixing = {
        arm: found
        for arm in parts
        if len(found := _aspects(parts[arm], parts[rules.baseline])) > 1
        and not _is_separated(arm, found, parts, rules)
    }
    stray = _stray(parts, rules)
    if (mixing or stray) and not rules.confounded:
        raise ControlError(_refusal(mixing, stray, parts, rules))
    return Confounds(rules.confounded, {**mixing, **stray}, _mixed(parts, rules))


def components(recipe: Mapping[str, Any], compensations: Mapping[str, str]) -> Components:
    """Return the parts of a recipe, without what a study sets itself or what makes up for a difference."""
    found: dict[str, dict[str, Any]] = {}
    for path, value in flatten(recipe).items():
        section, *below = path.split(".")
        if section not in ASPECTS or path in (*LABELS, *PER_SEED) or under(path, compensations):
            continue
        name = f"encoder.{below[0]}" if section == "encoder" else section
        found.setdefault(name, {})[path] = value
    return {name: json.dumps(values, sort_keys=True) for name, values in found.items()}


def _aspect(component: str) -> str:
    return ASPECTS[component.split(".")[0]]


def _differing(one: Components, other: Components) -> list[str]:
    return [name for name in {**one, **other} if one.get(name) != other.get(name)]


def _aspects(one: Components, other: Components) -> tuple[str, ...]:
    found = {_aspect(name) for name in _differing(one, other)}
    return tuple(aspect for aspect in dict.fromkeys(ASPECTS.values()) if aspect in found)


def _is_separated(
    arm: str, aspects: tuple[str, ...], parts: Mapping[str, Components], rules: Rules
) -> bool:
    return _by_factors(arm, aspects, rules) or not _missing_crossings(arm, aspects, parts, rules)


def _by_factors(arm: str, aspects: tuple[str, ...], rules: Rules) -> bool:
    """Return whether factors of one aspect each make up the arm's difference from the baseline."""
    design, paths = rules.design, rules.factor_paths or {}
    if design is None or arm not in design.cells or rules.baseline not in design.cells:
        return False
    mine, base = design.cells[arm], design.cells[rules.baseline]
    changed = [name for name in design.factors if mine[name] != base[name]]
    of_factors = [{_aspect(path) for path in paths[name]} for name in changed]
    single = all(len(found) == 1 for found in of_factors)
    return single and set(aspects) <= set[str]().union(*of_factors)


def _missing_crossings(
    arm: str, aspects: tuple[str, ...], parts: Mapping[str, Components], rules: Rules
) -> list[tuple[str, ...]]:
    """Return the parts of the arm's difference that no other arm has alone."""
    wanted = [part for size in range(1, len(aspects)) for part in combinations(aspects, size)]
    return [part for part in wanted if not _has_crossing(arm, part, rules.baseline, parts)]


def _has_crossing(
    arm: str, of_arm: Sequence[str], other: str, parts: Mapping[str, Components]
) -> bool:
    """Return whether some arm has these aspects of `arm` and all others of `other`."""
    names = {name for found in parts.values() for name in found}
    wanted = {name: parts[arm if _aspect(name) in of_arm else other].get(name) for name in names}
    return any(all(p.get(name) == wanted[name] for name in names) for p in parts.values())


def _stray(parts: Mapping[str, Components], rules: Rules) -> dict[str, tuple[str, ...]]:
    """Return arms that differ only in an aspect that is not studied, and are not crossed with it."""
    studied = {_aspect(path) for path in rules.varies}
    found: dict[str, tuple[str, ...]] = {}
    base = parts[rules.baseline]
    varied = {arm: _aspects(part, base) for arm, part in parts.items()}
    for arm, aspects in varied.items():
        if len(aspects) != 1 or aspects[0] in studied:
            continue
        others = [other for other, of in varied.items() if of and set(of) <= studied]
        if any(not _has_crossing(arm, aspects, other, parts) for other in others):
            found[arm] = aspects
    return found


def _refusal(
    mixing: Mapping[str, tuple[str, ...]],
    stray: Mapping[str, tuple[str, ...]],
    parts: Mapping[str, Components],
    rules: Rules,
) -> str:
    lines = ["the study mixes what should be told apart:"]
    for arm, aspects in mixing.items():
        lines.append(
            f"  '{arm}' differs from '{rules.baseline}' in {listed(aspects)} at once{_by_factor(arm, rules)}"
        )
        for part in _missing_crossings(arm, aspects, parts, rules):
            rest = [aspect for aspect in aspects if aspect not in part]
            lines.append(
                f"    no arm has the {listed(part)} of '{arm}' with the {listed(rest)} of "
                f"'{rules.baseline}'"
            )
    for arm, aspects in stray.items():
        lines.append(
            f"  '{arm}' differs in {listed(aspects)}, which is not what varies, and the other arms are not "
            "run with it"
        )
    lines.append(
        "Separate them: add the crossing arms, or give the differences as factors of one aspect each, so "
        "that all combinations are run. A difference that makes arms comparable (a rate tuned for each) "
        "belongs under 'compensations' with its reason. Or declare it with confounded: REASON, which the "
        "report puts first"
    )
    return "\n".join(lines)


def _by_factor(arm: str, rules: Rules) -> str:
    """Name the factors that change several aspects in one level."""
    if rules.design is None or arm not in rules.design.cells:
        return ""
    found = [
        name
        for name, paths in (rules.factor_paths or {}).items()
        if len({_aspect(path) for path in paths}) > 1
    ]
    return f" (the factor {listed(found)} changes several; split it)" if found else ""


def _mixed(parts: Mapping[str, Components], rules: Rules) -> tuple[str, ...]:
    """Return sentences on parts of the architecture that only ever differ together."""
    alone = set(_of_one_factor(rules))
    for one, other in combinations(parts, 2):
        differing = _differing(parts[one], parts[other])
        if len(differing) == 1:
            alone.add(differing[0])
    groups: dict[tuple[str, ...], list[str]] = {}
    for arm in parts:
        differing = _differing(parts[arm], parts[rules.baseline])
        names = tuple(name for name in differing if _aspect(name) == "architecture")
        if len(names) > 1 and not set(names) <= alone:
            groups.setdefault(names, []).append(arm)
    return tuple(
        f"The difference between {listed(arms)} and {rules.baseline} mixes {listed(names)}."
        for names, arms in groups.items()
    )


def _of_one_factor(rules: Rules) -> list[str]:
    """Return the parts that a factor changes alone, which a fraction tells apart without such pairs."""
    found = []
    for paths in (rules.factor_paths or {}).values():
        names = {
            ".".join(path.split(".")[: 2 if path.startswith("encoder.") else 1]) for path in paths
        }
        if len(names) == 1:
            found.append(names.pop())
    return found
