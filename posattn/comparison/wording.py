"""Numbers and lists as a reader wants them: signs, units, intervals, plain enumerations."""

from collections.abc import Sequence

from posattn.comparison.results_schema import MetricInfo
from posattn.comparison.statistics import PairedDifference, Summary

MINUS = "\u2212"
NONE = "\u2013"


def number(value: float | int | None, digits: int) -> str:
    """Return the number with a true minus sign, or a dash where there is none."""
    if value is None:
        return NONE
    return f"{value:,.{digits}f}".replace("-", MINUS)


def signed(value: float | int | None, digits: int) -> str:
    """Return the number with its sign; one that rounds to zero has none."""
    if value is None:
        return NONE
    text = f"{value:+,.{digits}f}"
    return text[1:] if float(text.replace(",", "")) == 0 else text.replace("-", MINUS)


def score(metric: MetricInfo, value: float | int | None) -> str:
    """Return a score in the metric's unit, without the unit's name."""
    return number(None if value is None else value * metric.factor, metric.digits)


def difference(metric: MetricInfo, value: float | int | None) -> str:
    """Return a signed difference in the metric's unit, without the unit's name."""
    return signed(None if value is None else value * metric.factor, metric.digits)


def interval(metric: MetricInfo, low: float | None, high: float | None) -> str:
    """Return `[low, high]` in the metric's unit, or a dash."""
    if low is None or high is None:
        return NONE
    return f"[{difference(metric, low)}, {difference(metric, high)}]"


def mean_and_sd(metric: MetricInfo, summary: Summary) -> str:
    """Return `mean ± sd`, or the mean alone where one value has no spread."""
    if summary.mean is None:
        return NONE
    if summary.sd is None:
        return score(metric, summary.mean)
    return f"{score(metric, summary.mean)} ± {score(metric, summary.sd)}"


def effect(metric: MetricInfo, found: PairedDifference) -> str:
    """Return the difference with its 95 % interval and n, in one phrase."""
    if found.mean is None:
        return f"no difference ({found.reason})"
    text = f"{difference(metric, found.mean)} {metric.unit_of_difference}"
    if found.low is None:
        return f"{text} (n = {found.n}, no interval)"
    return f"{text} (95 % interval {interval(metric, found.low, found.high)}, n = {found.n})"


def p_value(value: float | int | None) -> str:
    """Return a p value with two significant digits, `< 0.0001` below that."""
    if value is None:
        return NONE
    if value < 0.0001:
        return "< 0.0001"
    return f"{value:.2g}" if value < 0.1 else f"{value:.2f}"


def count(value: float | int | None) -> str:
    """Return a count with thousands separators."""
    return NONE if value is None else f"{value:,.0f}"


def large(value: float | int | None) -> str:
    """Return a count as `0.81 M` where it is large."""
    if value is None:
        return NONE
    for limit, unit in ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e4, "k")):
        if abs(value) >= limit:
            return f"{value / (1e3 if unit == 'k' else limit):.3g} {unit}"
    return f"{value:,.0f}"


def listed(names: Sequence[str]) -> str:
    """Return `a`, `a and b`, or `a, b and c`."""
    if len(names) < 2:
        return "".join(names)
    return f"{', '.join(names[:-1])} and {names[-1]}"


def plural(number_of: int, noun: str) -> str:
    """Return `1 run`, `2 runs`."""
    return f"{number_of} {noun}" if number_of == 1 else f"{number_of} {noun}s"
