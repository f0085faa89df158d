"""Proof of control: each rule that makes arms comparable, checked, recorded, and loud when broken.

Before the runs the resolved recipes are compared; after the runs, what the runs themselves recorded:
data, starting values, batches, budgets, and the conditions they ran under.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from posattn.comparison.differences import Differences, describe, differences, split
from posattn.errors import ControlError

LABELS = ("name", "description")
"""What a recipe is called decides nothing about its run."""

PER_SEED = ("train.seed", "train.data_seed")
"""A study sets these for each run, equally in all arms."""


@dataclass(frozen=True)
class Finding:
    """The outcome of one rule: whether it held (None: not checked), and on what evidence.

    `expected` marks a rule that cannot hold because of a difference which the study declares.
    """

    rule: str
    held: bool | None
    detail: str
    expected: bool = False

    @property
    def broken(self) -> bool:
        """Return whether the rule failed without the author having declared why."""
        return self.held is False and not self.expected

    def to_json(self) -> dict[str, Any]:
        """Return the finding as it stands in plan.json."""
        outcome: dict[str, Any] = {"rule": self.rule, "held": self.held, "detail": self.detail}
        return {**outcome, "expected": True} if self.expected else outcome


@dataclass(frozen=True)
class DeclaredFactors:
    """What a study lets differ: the factors it studies, and other differences with their reasons.

    `compensations` are differences that make arms comparable, such as tuned rates or matched sizes.
    """

    varies: tuple[str, ...]
    declared: Mapping[str, str]
    compensations: Mapping[str, str] = field(default_factory=dict)

    @property
    def prefixes(self) -> tuple[str, ...]:
        """Return all dotted prefixes in which arms may differ."""
        return tuple(dict.fromkeys((*self.varies, *self.declared, *self.compensations)))


def check_arms(
    recipes: Mapping[str, Mapping[str, Any]], baseline: str, factors: DeclaredFactors
) -> list[Finding]:
    """Compare the resolved recipes of all arms with the baseline's.

    Raises `ControlError` with every undeclared difference.
    """
    found = {
        arm: _comparable(differences(recipes[baseline], recipe)) for arm, recipe in recipes.items()
    }
    outside = {arm: split(pairs, factors.prefixes)[1] for arm, pairs in found.items()}
    if any(outside.values()):
        raise ControlError(_undeclared(outside, baseline, factors))
    seen = {path: pair for pairs in found.values() for path, pair in pairs.items()}
    counts = [f"{prefix} ({len(split(seen, [prefix])[0])} values)" for prefix in factors.prefixes]
    detail = (
        f"{len(recipes)} arms agree in every other value of their recipes and differ in "
        f"{', '.join(counts) or 'nothing'}"
    )
    same = [arm for arm, pairs in found.items() if not pairs and arm != baseline]
    if same:
        detail += f"; equal to the baseline in all but name: {', '.join(same)}"
    findings = [Finding("arms differ in the declared factors only", True, detail)]
    return [*_declared_otherwise(found, factors), *findings]


def _comparable(found: Differences) -> Differences:
    return {path: pair for path, pair in found.items() if path not in (*LABELS, *PER_SEED)}


def _declared_otherwise(
    found: Mapping[str, Differences], factors: DeclaredFactors
) -> list[Finding]:
    """Return a finding for each difference that is declared beside the factors: read these first."""
    findings = []
    reasons = [("declared", prefix, why) for prefix, why in factors.declared.items()]
    reasons += [("compensation", prefix, why) for prefix, why in factors.compensations.items()]
    for word, prefix, why in reasons:
        arms = [arm for arm, pairs in found.items() if split(pairs, [prefix])[0]]
        where = f"differs in {', '.join(arms)}" if arms else f"{word}, but all arms agree here"
        rule = f"{prefix} is equal in all arms"
        findings.append(Finding(rule, not arms, f"{where}; {word}: {why}", expected=bool(arms)))
    return findings


def _undeclared(outside: Mapping[str, Differences], baseline: str, factors: DeclaredFactors) -> str:
    lines = ["the arms differ in more than the study declares:"]
    for arm, pairs in outside.items():
        if pairs:
            lines.append(describe(pairs, f"'{baseline}'", f"'{arm}'"))
    lines.append(
        f"declared are: {', '.join(factors.prefixes) or 'none'}. Make the arms equal there, add the "
        "path to 'varies' if it is what you study, or to 'declared' with the reason"
    )
    return "\n".join(lines)


def raise_if_broken(findings: Sequence[Finding]) -> None:
    """Raise `ControlError` naming every rule that was broken without being declared."""
    broken = [finding for finding in findings if finding.broken]
    if broken:
        listed = "\n".join(f"  {finding.rule}: {finding.detail}" for finding in broken)
        raise ControlError(
            "the runs cannot be compared: these rules of control did not hold\n"
            f"{listed}\nThe report marks them; do not read differences between these arms as effects "
            "of the mechanism"
        )
