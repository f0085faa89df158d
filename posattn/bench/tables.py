"""The tables of a benchmark, for the terminal and for the page."""

from collections.abc import Sequence

from posattn.bench.plan import Target
from posattn.bench.results import BenchResult, Case, Measured
from posattn.figures.blocks import Table, numbers, words


def case_tables(cases: Sequence[Case]) -> list[Table]:
    """Return one table for each architecture and stage: times, ratios, first calls, memory."""
    return [_table(group) for group in by_subject_and_stage(cases)]


def by_subject_and_stage(cases: Sequence[Case]) -> list[list[Case]]:
    """Return the cases in groups that belong together, in the order they were measured in."""
    found: dict[tuple[str, str], list[Case]] = {}
    for case in cases:
        found.setdefault((case.subject, case.cell.kind()), []).append(case)
    return list(found.values())


def target_table(result: BenchResult) -> Table | None:
    """Return every target beside what was reached, or None if the plan has none."""
    if not result.plan.targets:
        return None
    return Table(
        "Against the targets",
        [*words("what", "input", "compared with"), *numbers("target", "reached"), *words("")],
        [_target_row(target, result.reached(target)) for target in result.plan.targets],
        note="How many times as fast the fastest of ours is: median over rounds of the ratio of times.",
    )


def heading(case: Case) -> str:
    """Return the words for an architecture in a stage."""
    return f"{case.subject} ({case.title}), {case.cell.kind()}"


def _table(cases: list[Case]) -> Table:
    return Table(
        heading(cases[0]),
        [
            *words("input", "encoder", "attention"),
            *numbers("ms", "quartiles", "speed", "first call", "peak MB"),
        ],
        [_row(case, one) for case in cases for one in case.contestants],
        note=_note(cases),
    )


def _row(case: Case, one: Measured) -> list[str]:
    low, high = one.quartiles()
    peak = "" if one.peak_memory_bytes is None else f"{one.peak_memory_bytes / 2**20:,.0f}"
    ratio = one.times_as_fast_as(case.reference())
    return [
        case.cell.shape(),
        one.name,
        one.attention,
        milliseconds(one.median()),
        f"[{milliseconds(low)}, {milliseconds(high)}]",
        f"{ratio:.2f}",
        milliseconds(one.first_seconds),
        peak,
    ]


def _note(cases: list[Case]) -> str:
    """Return what speed means here, how equal the contestants are, and who could not take part."""
    measured = [one for case in cases for one in case.contestants]
    exact = [
        one.difference
        for one in measured
        if one.difference is not None and one.precision == "float32"
    ]
    parts = [
        f"Speed: times as fast as {cases[0].reference().name}, the median over rounds of the ratio of "
        "times. Times in ms; the first call is apart."
    ]
    if len(exact) > 1:
        parts.append(f"States of the same weights differ by at most {max(exact):.1e} in float32.")
    others = dict.fromkeys(one.name for one in measured if not one.same_function)
    if others:
        parts.append(f"Another function at the same size: {', '.join(others)}.")
    refused = {name: reason for case in cases for name, reason in case.refused.items()}
    for name, reason in refused.items():
        parts.append(f"Not measured: {name} ({reason}).")
    return " ".join(parts)


def _target_row(target: Target, reached: float | None) -> list[str]:
    verdict = (
        "not measured" if reached is None else "met" if reached >= target.at_least else "missed"
    )
    shown = "" if reached is None else f"{reached:.2f}"
    return [
        ", ".join([target.subject, *[target.precision] * (target.precision != "float32")]),
        str(target.cell),
        target.against,
        f"{target.at_least:.2f}",
        shown,
        verdict,
    ]


def milliseconds(seconds: float) -> str:
    """Return a time in milliseconds with three figures or more."""
    value = 1000 * seconds
    digits = 2 if value < 10 else 1 if value < 100 else 0
    return f"{value:,.{digits}f}"
