"""Standards of budgets, tuning, and of the seeds that tuning must not use."""

from posattn.comparison.report.standards import running
from posattn.comparison.report.standards.finding import Standing
from posattn.comparison.results_schema import Results


def budget(results: Results) -> Standing:
    """Time and memory are measured, and a budget is matched."""
    return running.time_and_memory(results)


def tuning(results: Results) -> Standing:
    """Every arm has the same tuning, and all trials are shown."""
    how = "Nothing was tuned: all arms have the values of the base recipe, chosen for none of them."
    return Standing("no", how, "limits")


def seeds(results: Results) -> Standing:
    """Reporting seeds are enough, paired, and apart from those of tuning."""
    return running.seeds(results)
