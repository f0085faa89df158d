"""`Standing`: whether a study did what a standard asks, on what evidence, and where it is shown."""

from dataclasses import dataclass
from typing import Literal

from posattn.comparison import wording
from posattn.comparison.results_schema import ControlResult, Results, RunResult

Status = Literal["yes", "partly", "no", "not applicable"]


@dataclass(frozen=True)
class Standing:
    """`how` is one sentence of evidence or of what is missing; `section` is where it is shown."""

    status: Status
    how: str
    section: str


def finished(results: Results) -> list[RunResult]:
    """Return the runs that ended as planned."""
    return [run for run in results.runs if run.state == "finished"]


def rule(results: Results, *parts: str) -> ControlResult | None:
    """Return the first rule of control whose text has all these parts."""
    return next((r for r in results.control if all(part in r.rule for part in parts)), None)


def by_rules(rules: list[ControlResult | None], claim: str) -> Standing:
    """Return what the rules of control prove: `claim`, if all of them were checked and held."""
    known = [found for found in rules if found is not None]
    if not known or len(known) < len(rules):
        return Standing("no", "plan.json does not list this rule: nothing is proved.", "control")
    broken = [found for found in known if found.broken]
    if broken:
        return Standing("no", f"Not held: {broken[0].rule}: {broken[0].detail}", "control")
    declared = [found for found in known if found.held is False]
    if declared:
        return Standing("partly", f"Declared otherwise: {declared[0].detail}", "control")
    if any(found.held is None for found in known):
        return Standing("no", "Not checked: there is nothing yet to compare.", "control")
    return Standing("yes", f"{claim}: {'; '.join(found.detail for found in known)}.", "control")


def share(part: int, whole: int, noun: str) -> str:
    """Return `all 6 runs`, `4 of 6 runs`, or `the only run`."""
    if part < whole:
        return f"{part} of {wording.plural(whole, noun)}"
    return f"the only {noun}" if whole == 1 else f"all {wording.plural(whole, noun)}"
