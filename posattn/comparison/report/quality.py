"""The sections on quality: differences, scores, learning curves, lengths, positions."""

from collections.abc import Iterable
from typing import Any

from posattn.comparison import wording
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
    blocks.append(_contrast_table(results))
    if len(results.arms) > 2:
        blocks.append(_matrix(results))
    return blocks + _secondary(results)


def _contrast_table(results: Results) -> Table:
    metric, baseline = results.primary, results.study.baseline
    contrasts = results.family("baseline")
    rows = [_contrast_row(results, contrast) for contrast in contrasts]
    sizes = {c.judgement.family_size for c in contrasts if c.judgement}
    family = wording.plural(max(sizes, default=0), "contrast")
    note = (
        f"Verdicts come from paired t tests over seeds, corrected by Holm's method over the "
        f"{family} with the baseline at 5 %. Exact p: sign-flip test over the same seeds, with the "
        "least p that n allows. Smallest visible: the difference shown with 80 % power after "
        "correction."
    )
    return Table(
        f"Difference from {baseline} in {metric.label}, {metric.unit_of_difference} "
        f"({metric.better} is better)",
        [
            *words("arm", "verdict"),
            *numbers("n", "difference", "95 % interval", "corrected interval"),
            *numbers("t test p", "Holm p", "exact p (least)", "smallest visible"),
        ],
        rows,
        note,
        name="differences",
    )


def _contrast_row(results: Results, contrast: Contrast) -> list[str]:
    metric, found, judged = results.primary, contrast.difference, contrast.judgement
    exact = wording.NONE
    if found.p_exact is not None:
        exact = f"{wording.p_value(found.p_exact)} ({wording.p_value(found.smallest_p)})"
    low, high = (judged.corrected_low, judged.corrected_high) if judged else (None, None)
    verdict: str = judged.verdict if judged else "not tested"
    if verdict == "not tested" and found.reason:
        verdict = f"not tested: {found.reason}"
    return [
        contrast.first,
        verdict,
        str(found.n),
        wording.difference(metric, found.mean),
        wording.interval(metric, found.low, found.high),
        wording.interval(metric, low, high),
        wording.p_value(found.p_t),
        wording.p_value(judged.p_holm if judged else None),
        exact,
        wording.score(metric, judged.smallest_detectable if judged else None),
    ]


def _matrix(results: Results) -> Table:
    metric = results.primary
    cells: dict[tuple[str, str], str] = {}
    for contrast in results.family("baseline") + results.family("pairs"):
        mean = contrast.difference.mean
        open_pair = not contrast.judgement or contrast.judgement.verdict == "indistinguishable"
        untested = not contrast.judgement or contrast.judgement.verdict == "not tested"
        for row, column, sign in (
            (contrast.first, contrast.second, 1),
            (contrast.second, contrast.first, -1),
        ):
            text = wording.difference(metric, None if mean is None else sign * mean)
            mark = "?" if untested else "\u2248" if open_pair else ""
            cells[row, column] = f"{mark} {text}".strip()
    names = [arm.name for arm in results.arms]
    rows = [[row, *(cells.get((row, column), "\u00b7") for column in names)] for row in names]
    pairs = wording.plural(len(results.family("pairs")), "pair")
    note = (
        "\u2248 marks a pair that cannot be told apart after Holm's correction "
        f"(contrasts with the baseline as above; the other {pairs} as a second family at 5 %, "
        "judged only if a contrast with the baseline holds or none can be tested). ? marks a pair "
        "that could not be tested."
    )
    return Table(
        f"Row minus column in {metric.label}, {metric.unit_of_difference}",
        [*words("arm"), *numbers(*names)],
        rows,
        note,
        name="pairs",
    )


def _secondary(results: Results) -> list[Block]:
    metric = results.primary
    rows = []
    for contrast in results.family("baseline"):
        interval, tests = contrast.sample_interval, contrast.sample_tests
        if interval is None and not tests:
            continue
        bounds = wording.NONE
        if interval is not None:
            bounds = wording.interval(metric, interval.low, interval.high)
        counts = "; ".join(
            f"seed {t.seed}: {t.more} more, {t.fewer} fewer, p {wording.p_value(t.p)}"
            for t in tests
        )
        samples = interval.samples if interval else tests[0].samples
        rows.append([contrast.first, wording.count(samples), bounds, counts])
    if not rows:
        return []
    note = (
        "These are about the models that were trained here, on other text of this kind: seeds are "
        "held fixed, so they do not say that a mechanism is better, are not corrected and decide "
        "nothing. Samples with more or fewer right tokens than the baseline, with the exact "
        "McNemar p."
    )
    return [
        Table(
            f"Secondary: against {results.study.baseline} over validation samples, seeds held",
            [
                *words("arm"),
                *numbers("samples", "95 % bootstrap interval of the difference"),
                *words("samples with more or fewer right tokens"),
            ],
            rows,
            note,
            folded="Secondary: the same differences over validation samples",
            name="samples",
        )
    ]


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
