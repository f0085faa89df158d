"""Standards of budgets, tuning, and of the seeds that tuning must not use."""

from dataclasses import replace

from posattn.comparison import wording
from posattn.comparison.report.standards import running
from posattn.comparison.report.standards.finding import Standing
from posattn.comparison.results_schema import Results


def budget(results: Results) -> Standing:
    """Time and memory are measured, and a budget is matched."""
    measured = running.time_and_memory(results)
    found = results.budget
    if found is None:
        how = f"{measured.how} No budget is recorded: arms are equal in steps by their recipes."
        return Standing("no" if measured.status == "no" else "partly", how, "cost")
    over: dict[str, float] = {}
    for arm in found.arms:
        for name, value in arm.over_baseline.items():
            if value is not None and abs(value) >= abs(over.get(name, 0.0)):
                over[name] = value
    left = [f"{name.replace('_', ' ')} {_percent(value)}" for name, value in over.items()]
    rest = f"; most left over against the baseline: {', '.join(left)}" if left else ""
    how = f"Matched by {found.match}{rest}. {measured.how}"
    return Standing("partly" if measured.status == "no" else measured.status, how, "budget")


def tuning(results: Results) -> Standing:
    """Every arm has the same tuning, and all trials are shown."""
    found = results.tuning
    if found is None:
        how = "Nothing was tuned: all arms have the values of the base recipe, chosen for none of them."
        return Standing("no", how, "limits")
    how = (
        f"{wording.plural(found.trials_per_arm, 'trial')} for each arm on one grid "
        f"({wording.listed(list(found.grid))}), chosen by {found.select_by} over "
        f"{wording.plural(len(found.seeds), 'tuning seed')}; every trial is shown"
    )
    failed = sum(len(arm.failed) for arm in found.arms)
    how += f", {wording.plural(failed, 'failed one')} too." if failed else "."
    at_edge = [arm.arm for arm in found.arms if not arm.tuned]
    if at_edge:
        how += f" At the edge of the grid, hence not tuned: {wording.listed(at_edge)}."
    return Standing("partly" if at_edge else "yes", how, "tuning")


def seeds(results: Results) -> Standing:
    """Reporting seeds are enough, paired, and apart from those of tuning."""
    standing = running.seeds(results)
    if results.tuning is None:
        return standing
    used = wording.listed([str(seed) for seed in results.tuning.seeds])
    return replace(standing, how=f"{standing.how} Tuning had seeds of its own: {used}.")


def _percent(share: float) -> str:
    return f"{wording.signed(100 * share, 1)} %"
