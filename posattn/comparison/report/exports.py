"""The main tables of a report for a paper: tables/NAME.tex in print, tables/NAME.csv in full precision."""

from dataclasses import dataclass, replace
from pathlib import Path

from posattn.comparison import wording
from posattn.comparison.report.files import to_csv
from posattn.comparison.report.latex import Heading, latex_table
from posattn.comparison.report.methods import shown_contrasts
from posattn.comparison.results_schema import Contrast, Results
from posattn.comparison.statistics import Summary
from posattn.figures.blocks import Block, Section, Table
from posattn.figures.figure import Row
from posattn.training.durable import write_bytes

FOLDER = "tables"


@dataclass(frozen=True)
class Export:
    """One table: as printed, and its numbers unrounded."""

    name: str
    caption: str
    headings: list[Heading]
    printed: list[list[str]]
    columns: tuple[str, ...]
    rows: list[Row]


def exports(results: Results) -> list[Export]:
    """Return the tables of scores, differences and lengths that the results allow."""
    made = [_scores(results), _differences(results), _lengths(results)]
    return [export for export in made if export.rows]


def write_exports(made: list[Export], study: str, out: Path) -> None:
    """Write all tables of a study into `out`/tables; `study` is part of their labels."""
    folder = out / FOLDER
    folder.mkdir(exist_ok=True)
    for export in made:
        label = f"tab:{study}-{export.name}"
        text = latex_table(export.headings, export.printed, export.caption, label)
        data = to_csv(export.columns, export.rows)
        write_bytes(folder / f"{export.name}.tex", text.encode(), synced=False)
        write_bytes(folder / f"{export.name}.csv", data.encode(), synced=False)


def with_exports(sections: list[Section], made: list[Export]) -> list[Section]:
    """Return the sections with links to the files under the tables of the same names."""
    names = {export.name for export in made}

    def linked(block: Block) -> Block:
        if not isinstance(block, Table) or block.name not in names:
            return block
        place = f"{FOLDER}/{block.name}"
        return replace(block, files={"data (CSV)": f"{place}.csv", "LaTeX": f"{place}.tex"})

    return [replace(section, blocks=[linked(b) for b in section.blocks]) for section in sections]


def _scores(results: Results) -> Export:
    metrics = results.metrics
    printed: list[list[str]] = []
    rows: list[Row] = []
    for arm in results.arms:
        line = [arm.name]
        row: list[str | float | int | None] = [arm.name, arm.runs_planned, arm.runs_finished]
        for metric in metrics:
            found = arm.scores[metric.name].summary
            line += [wording.score(metric, found.mean), wording.score(metric, found.sd)]
            line.append(str(found.n))
            row += [found.mean, found.sd, found.n]
        printed.append(line)
        rows.append(tuple(row))
    caption = (
        f"{_name(results)}: scores over seeds (mean, sample standard deviation, number of finished "
        "runs)."
    )
    headings = [Heading("arm", words=True)]
    headings += [Heading(f"{m.label} ({m.unit})", ("mean", "sd", "n")) for m in metrics]
    parts = (f"{m.name}_{part}" for m in metrics for part in ("mean", "sd", "n"))
    columns = ("arm", "runs_planned", "runs_finished", *parts)
    return Export("scores", caption, headings, printed, columns, rows)


def _differences(results: Results) -> Export:
    metric, baseline = results.primary, results.study.baseline
    contrasts = shown_contrasts(results)
    caption = (
        f"{_name(results)}: difference from {baseline} in {metric.label} "
        f"({metric.unit_of_difference}, {metric.better} is better), paired over n seeds; verdicts "
        "at 5 % after Holm's correction."
    )
    if results.named:
        caption += f" {_named_in_words(results)}"
    headings = [Heading("arm", words=True)]
    headings += [Heading(title) for title in ("n", "difference", "95 % interval", "Holm p")]
    headings.append(Heading("verdict", words=True))
    columns = (
        *("arm", "baseline", "metric", "n", "mean", "sd", "low_95", "high_95", "p_t", "p_exact"),
        *("p_holm", "corrected_low", "corrected_high", "smallest_detectable", "verdict", "reason"),
    )
    printed = [_printed_difference(results, contrast) for contrast in contrasts]
    rows = [_difference(contrast) for contrast in contrasts]
    return Export("differences", caption, headings, printed, columns, rows)


def _named_in_words(results: Results) -> str:
    pairs = [f"{contrast.first} against {contrast.second}" for contrast in results.named]
    return f"Named beforehand, and judged first: {wording.listed(pairs)}."


def _printed_difference(results: Results, contrast: Contrast) -> list[str]:
    metric, found, judged = results.primary, contrast.difference, contrast.judgement
    second = contrast.second
    return [
        contrast.first + ("" if second == results.study.baseline else f" against {second}"),
        str(found.n),
        wording.difference(metric, found.mean),
        wording.interval(metric, found.low, found.high),
        wording.p_value(judged.p_holm if judged else None),
        judged.verdict if judged else "not tested",
    ]


def _difference(contrast: Contrast) -> Row:
    found, judged = contrast.difference, contrast.judgement
    decided: Row = (None, None, None, None, "not tested")
    if judged is not None:
        bounds = (judged.corrected_low, judged.corrected_high)
        decided = (judged.p_holm, *bounds, judged.smallest_detectable, judged.verdict)
    about = (contrast.first, contrast.second, contrast.metric, found.n, found.mean, found.sd)
    return (*about, found.low, found.high, found.p_t, found.p_exact, *decided, found.reason)


def _lengths(results: Results) -> Export:
    lengths = sorted({p.length for arm in results.arms for p in arm.length})
    printed = []
    for arm in results.arms:
        points = {point.length: point for point in arm.length}
        cells = []
        for length in lengths:
            point = points.get(length)
            refused = point is not None and point.refused and point.summary.n == 0
            cells.append("cannot run" if refused else _cell(point.summary if point else None))
        printed.append([arm.name, *cells])
    train = results.study.train_length
    titles = [f"{n} ({n / train:g}\u00d7)" if train else str(n) for n in lengths]
    caption = (
        f"{_name(results)}: validation loss by sequence length, nats per masked token (mean \u00b1 "
        "sample standard deviation over seeds; not tested)."
    )
    rows: list[Row] = [
        (arm.name, p.length, p.multiple, p.summary.n, p.summary.mean, p.summary.sd, p.refused)
        for arm in results.arms
        for p in arm.length
    ]
    columns = ("arm", "length", "multiple", "n", "mean", "sd", "refused")
    headings = [Heading("arm", words=True), *map(Heading, titles)]
    return Export("length", caption, headings, printed, columns, rows)


def _cell(summary: Summary | None) -> str:
    if summary is None or summary.mean is None:
        return wording.NONE
    mean = wording.number(summary.mean, 3)
    return mean if summary.sd is None else f"{mean} \u00b1 {wording.number(summary.sd, 3)}"


def _name(results: Results) -> str:
    return results.study.title or results.study.name
