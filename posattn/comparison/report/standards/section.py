"""The section "How this comparison was controlled": twenty standards, one line each."""

from collections import Counter
from collections.abc import Callable

from posattn.comparison import wording
from posattn.comparison.report.standards import judging, running, tuned
from posattn.comparison.report.standards.finding import Standing
from posattn.comparison.results_schema import Results
from posattn.figures.blocks import Section, Table, Text, words

Judge = Callable[[Results], Standing]

STANDARDS: tuple[tuple[str, Judge], ...] = (
    ("Arms differ in the declared factors only", running.declared_factors),
    ("Batches and masks equal, by hash", running.same_batches),
    ("Shared parameters start equal, others listed", running.same_start),
    ("Parameters and operations counted", running.sizes),
    ("Time and memory measured, interleaved; budget matched", tuned.budget),
    ("Same tuning for every arm, all trials shown", tuned.tuning),
    ("Enough paired seeds, apart from those of tuning", tuned.seeds),
    ("Failed and killed runs stay in the tables", running.failures),
    ("Scores of every sample saved", running.samples),
    (
        "Paired differences with interval, n, test, smallest visible effect",
        judging.paired_differences,
    ),
    ("Corrected for many contrasts, or one named beforehand", judging.multiplicity),
    ("Several tasks aggregated robustly", judging.tasks),
    ("Learning curves with bands, by tokens and by time", judging.curves),
    ("Loss by length and by position, refusals marked", judging.lengths_and_positions),
    ("Checks of what the maths says, on every arm", judging.diagnostics),
    ("Every mechanism tested by itself before", judging.self_test),
    ("Variant of every mechanism stated", judging.fidelity),
    ("Environment and data frozen", running.environment),
    ("An arm reproduces a number it is known for", judging.known_number),
    ("Limits said", judging.limits),
)


def standard_sections(results: Results, others: list[Section]) -> list[Section]:
    """Return the section; what no file proves is not claimed. It links to the `others` there are."""
    titles = {section.id: section.title for section in others}
    rows: list[list[str]] = []
    targets: dict[tuple[int, int], str] = {}
    for number, (title, judge) in enumerate(STANDARDS, start=1):
        found = judge(results)
        if found.section in titles:
            targets[len(rows), 4] = f"#{found.section}"
        shown = titles.get(found.section, wording.NONE)
        rows.append([str(number), title, found.status, found.how, shown])
    counts = Counter(row[2] for row in rows)
    summed = [f"{counts[status]} {status}" for status in ("yes", "partly", "no", "not applicable")]
    intro = Text(
        f"What a controlled comparison must do, and what the files of this study show of it: "
        f"{wording.listed(summed)}. \u201cno\u201d means that nothing here proves it."
    )
    table = Table(
        "Twenty standards",
        words("number", "standard", "done", "how, or what is missing", "section"),
        rows,
        name="standards",
        links=targets,
        row_ids={row: f"standard-{row + 1}" for row in range(len(rows))},
    )
    return [Section("standards", "How this comparison was controlled", [intro, table])]
