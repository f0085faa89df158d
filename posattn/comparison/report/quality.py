"""The sections on quality: differences, scores, learning curves, lengths, positions."""

from collections.abc import Iterable
from typing import Any

from posattn.comparison import wording
from posattn.comparison.report.differences import difference_blocks
from posattn.comparison.report.links import arm_page, file_target, run_id
from posattn.comparison.results_schema import ArmResult, Contrast, Results
from posattn.comparison.statistics import Summary, summarize
from posattn.figures import Figure
from posattn.figures.blocks import (
    Block,
    Picture,
    Section,
    Table,
    Text,
    numbers,
    words,
)

Figures = dict[str, Figure]


def quality_sections(results: Results, figures: Figures) -> list[Section]:
    """Return the sections on quality that have content."""
    sections = [
        Section("differences", "Differences", _differences(results, figures)),
        Section("scores", "Scores", [_scores(results), _runs(results)]),
        Section("curves", "Learning curves", _pictures(figures, "curves", "curves_by_time")),
        Section("length", "Loss by sequence length", _lengths(results, figures)),
        Section("position", "Loss by position", _pictures(figures, "position")),
        Section("other", "Other evaluations", _other(results)),
    ]
    return [section for section in sections if section.blocks]


def _pictures(figures: Figures, *names: str) -> list[Block]:
    return [Picture(figures[name]) for name in names if name in figures]


def _differences(results: Results, figures: Figures) -> list[Block]:
    if len(results.arms) == 1:
        return []
    blocks = _pictures(figures, "differences")
    return blocks + difference_blocks(results)


def _scores(results: Results) -> Table:
    baseline = results.study.baseline
    columns = [*words("arm"), *numbers("seeds finished")]
    for metric in results.metrics:
        titles = (f"{metric.label}, {metric.unit}", f"difference from {baseline}, 95 % interval")
        columns += numbers(*titles)
        columns += words("verdict") if metric.primary else []
    note = (
        "Mean \u00b1 sample standard deviation (n \u2212 1) over the finished seeds; differences are "
        f"paired by seed. The verdict is on the primary score, {results.primary.label}, after "
        "correction; other scores have no verdict. Arms are in the order of the study, which is no "
        "ranking."
    )
    rows = [_score_row(results, arm) for arm in results.arms]
    return Table("Scores on the validation split", columns, rows, note, name="scores")


def _score_row(results: Results, arm: ArmResult) -> list[str]:
    baseline = results.study.baseline
    row = [arm.name, f"{arm.runs_finished} of {arm.runs_planned}"]
    for metric in results.metrics:
        row.append(wording.mean_and_sd(metric, arm.scores[metric.name].summary))
        matching = (c for c in results.contrasts if _is_against(c, metric.name, arm.name, baseline))
        contrast = next(matching, None)
        found = contrast.difference if contrast else None
        cell = wording.difference(metric, found.mean if found else None)
        if found is not None and found.low is not None:
            cell += " " + wording.interval(metric, found.low, found.high)
        row.append(cell)
        if metric.primary:
            judged = contrast.judgement if contrast else None
            row.append(
                "baseline" if arm.is_baseline else judged.verdict if judged else "not tested"
            )
    return row


def _is_against(contrast: Contrast, metric: str, arm: str, baseline: str) -> bool:
    same = contrast.metric == metric and contrast.first == arm
    return same and contrast.second == baseline


def _runs(results: Results) -> Table:
    metric, rows = results.primary, []
    compiled = any(run.graphs is not None for run in results.runs)
    for run in results.runs:
        score = run.scores[metric.name]
        seconds = wording.number(run.seconds, 0)
        row = [run.arm, str(run.seed), run.state, wording.count(run.step)]
        row += [wording.large(run.tokens), seconds, wording.score(metric, score.value)]
        graphs = [wording.NONE if run.graphs is None else str(run.graphs)] if compiled else []
        rows.append([*row, *graphs, run.reason or score.reason or "", run.folder])
    numbered = list(enumerate(results.runs))
    pages = {(n, 1): f"{arm_page(run.arm)}#{run_id(run.arm, run.seed)}" for n, run in numbered}
    titles = ["step", "tokens", "seconds", metric.label, *(["graphs compiled"] if compiled else [])]
    columns = [*words("arm"), *numbers("seed"), *words("state"), *numbers(*titles)]
    finished = f"{results.study.runs_finished} of {results.study.runs_planned} finished"
    return Table(
        f"Every run, failed and killed ones too ({finished})",
        [*columns, *words("reason", "folder")],
        rows,
        folded=f"Every run ({finished})",
        name="runs",
        links=pages
        | {(n, 8 + compiled): file_target(f"{run.folder}/") for n, run in numbered if run.files},
        row_ids={n: run_id(run.arm, run.seed) for n, run in numbered},
    )


def _lengths(results: Results, figures: Figures) -> list[Block]:
    lengths = sorted({p.length for arm in results.arms for p in arm.length})
    if not lengths:
        return []
    train = results.study.train_length
    titles = [f"{n} ({n / train:g}\u00d7)" if train else str(n) for n in lengths]
    rows = [[arm.name, *(_length_cell(arm, length) for length in lengths)] for arm in results.arms]
    table = Table(
        "Validation loss by sequence length, nats per masked token (mean \u00b1 sample sd)",
        [*words("arm"), *numbers(*titles)],
        rows,
        "Not tested. Each length is measured on a share of the validation text of its own, so 1\u00d7 "
        "need not equal the score above. \u201ccannot run\u201d: the mechanism refuses this length; "
        "the reason is at the figure and in results.json.",
        name="length",
    )
    return [*_pictures(figures, "length"), table]


def _length_cell(arm: ArmResult, length: int) -> str:
    point = next((p for p in arm.length if p.length == length), None)
    if point is None:
        return wording.NONE
    if point.refused and point.summary.n == 0:
        return "cannot run"
    return _plain(point.summary)


def _plain(summary: Summary) -> str:
    text = wording.number(summary.mean, 3)
    return text if summary.sd is None else f"{text} \u00b1 {wording.number(summary.sd, 3)}"


def _other(results: Results) -> list[Block]:
    """Return one table of whatever numbers further evaluations left, mean and sd over seeds."""
    values: dict[str, dict[str, list[float]]] = {}
    for run in results.runs:
        if run.state == "finished":
            for key, value in _scalars(run.other):
                values.setdefault(key, {}).setdefault(run.arm, []).append(value)
    if not values:
        return []
    rows = [
        [arm.name, *(_plain(summarize(values[key].get(arm.name, []))) for key in values)]
        for arm in results.arms
    ]
    text = Text("Numbers of further evaluations as they gave them; their units are their own.")
    caption = "Further evaluations, mean \u00b1 sample sd over finished seeds, not tested"
    return [text, Table(caption, [*words("arm"), *numbers(*values)], rows, name="other")]


def _scalars(content: dict[str, Any], prefix: str = "") -> Iterable[tuple[str, float]]:
    for key, value in content.items():
        if isinstance(value, dict):
            yield from _scalars(value, f"{prefix}{key}.")
        elif isinstance(value, int | float) and not isinstance(value, bool):
            yield f"{prefix}{key}", float(value)
