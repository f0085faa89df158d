"""Numbers that an arm should reproduce, checked against its runs before anything is compared."""

from collections.abc import Sequence

from posattn.comparison.commitments import Expectation
from posattn.comparison.control import Finding
from posattn.comparison.metrics import metrics
from posattn.comparison.run_evidence import RunEvidence


def check_expectations(
    expected: Sequence[Expectation], runs: Sequence[RunEvidence]
) -> list[Finding]:
    """Return one finding of control per expected number: the arm's mean over seeds against it.

    Not checked (null) where no run of the arm finished with that score.
    """
    return [_check(item, runs) for item in expected]


def _check(item: Expectation, runs: Sequence[RunEvidence]) -> Finding:
    rule = f"the arm {item.arm} reproduces the {item.score} it is known for"
    metric = metrics.get(item.score)
    found: dict[int, float] = {}
    for run in runs:
        value = (run.evaluations.get(metric.section) or {}).get(metric.key)
        if run.arm == item.arm and run.finished and value is not None:
            found[run.seed] = float(value)
    wanted = f"expected {item.value:g} \u00b1 {item.tolerance:g} ({item.source})"
    if not found:
        return Finding(rule, None, f"no run of it finished with that score; {wanted}")
    mean = sum(found.values()) / len(found)
    held = abs(mean - item.value) <= item.tolerance
    singles = ", ".join(f"seed {seed}: {value:.4g}" for seed, value in sorted(found.items()))
    seen = f"{mean:.4g}, mean over {len(found)} of {_planned(item, runs)} runs ({singles})"
    gap = "" if held else f"; off by {abs(mean - item.value):.3g}: mend this before comparing"
    return Finding(rule, held, f"{seen}; {wanted}{gap}")


def _planned(item: Expectation, runs: Sequence[RunEvidence]) -> int:
    return sum(run.arm == item.arm for run in runs)
