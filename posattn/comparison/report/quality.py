"""The sections on quality: differences, scores, learning curves, lengths, positions."""

from collections.abc import Iterable
from typing import Any

from posattn.comparison import wording
from posattn.comparison.answer_named import gate_words
from posattn.comparison.report.methods import (
    exact_p,
    method_blocks,
    shown_contrasts,
    title_of,
)
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
    blocks += [_contrast_table(results, *about) for about in _families(results)]
    blocks += method_blocks(results)
    if len(results.arms) > 2:
        blocks.append(_matrix(results))
    return blocks + _secondary(results)


def _families(results: Results) -> list[tuple[str, list[tuple[str, Contrast]], str]]:
    """Return caption, rows by name, and the words on correction of each table of contrasts."""
    baseline = results.study.baseline
    others = [(c.first, c) for c in results.family("baseline") if not c.named]
    size = wording.plural(_family_size([c for _, c in others]), "contrast")
    if not results.named:
        how = f"corrected by Holm's method over the {size} with the baseline at 5 %."
        return [(f"Difference from {baseline}", others, how)]
    named = [(title_of(c), c) for c in results.named]
    count = wording.plural(_family_size(results.named), "contrast")
    alone = (
        f"corrected by Holm's method over the {count} that the study named before its first step "
        "at 5 %."
        if len(named) > 1
        else "at 5 % without correction: the study named this one contrast before its first step."
    )
    tables = [("Contrasts named beforehand: difference", named, alone)]
    if others:
        how = (
            "corrected by Holm's method over all pairs that were not named beforehand, a second "
            f"family at 5 %, {gate_words(results)}."
        )
        tables.append((f"Not named beforehand: difference from {baseline}", others, how))
    return tables


def _family_size(contrasts: list[Contrast]) -> int:
    return max((c.judgement.family_size for c in contrasts if c.judgement), default=0)


def _contrast_table(
    results: Results, caption: str, contrasts: list[tuple[str, Contrast]], correction: str
) -> Table:
    metric = results.primary
    rows = [_contrast_row(results, name, contrast) for name, contrast in contrasts]
    note = (
        f"Verdicts come from paired t tests over seeds, {correction} Exact p: sign-flip test over "
        "the same seeds, with the least p that n allows. Smallest visible: the difference shown "
        "with 80 % power after correction."
    )
    return Table(
        f"{caption} in {metric.label}, {metric.unit_of_difference} ({metric.better} is better)",
        [
            *words("arm" if contrasts[0][0] == contrasts[0][1].first else "contrast", "verdict"),
            *numbers("n", "difference", "95 % interval", "corrected interval"),
            *numbers("t test p", "Holm p", "exact p (least)", "smallest visible"),
        ],
        rows,
        note,
    )


def _contrast_row(results: Results, name: str, contrast: Contrast) -> list[str]:
    metric, found, judged = results.primary, contrast.difference, contrast.judgement
    low, high = (judged.corrected_low, judged.corrected_high) if judged else (None, None)
    verdict: str = judged.verdict if judged else "not tested"
    if verdict == "not tested" and found.reason:
        verdict = f"not tested: {found.reason}"
    return [
        name,
        verdict,
        str(found.n),
        wording.difference(metric, found.mean),
        wording.interval(metric, found.low, found.high),
        wording.interval(metric, low, high),
        wording.p_value(found.p_t),
        wording.p_value(judged.p_holm if judged else None),
        exact_p(contrast),
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
    note = (
        "\u2248 marks a pair that cannot be told apart after Holm's correction "
        f"({_families_in_words(results)}). ? marks a pair that could not be tested."
    )
    return Table(
        f"Row minus column in {metric.label}, {metric.unit_of_difference}",
        [*words("arm"), *numbers(*names)],
        rows,
        note,
    )


def _families_in_words(results: Results) -> str:
    if results.named:
        others = f"all other pairs as a second family at 5 %, {gate_words(results)}"
        return f"the contrasts named beforehand; {others}"
    pairs = wording.plural(len(results.family("pairs")), "pair")
    return (
        f"contrasts with the baseline as above; the other {pairs} as a second family at 5 %, "
        "judged only if a contrast with the baseline holds or none can be tested"
    )


def _secondary(results: Results) -> list[Block]:
    rows = []
    for contrast in shown_contrasts(results):
        tests = contrast.sample_tests
        if not tests:
            continue
        counts = "; ".join(
            f"seed {t.seed}: {t.more} more, {t.fewer} fewer, p {wording.p_value(t.p)}"
            for t in tests
        )
        rows.append([title_of(contrast), wording.count(tests[0].samples), counts])
    if not rows:
        return []
    note = (
        "These are about the models that were trained here, on other text of this kind: seeds are "
        "held fixed, so they do not say that a mechanism is better, are not corrected and decide "
        "nothing. Samples of which the first arm got more or fewer tokens right than the second, "
        "with the exact McNemar p."
    )
    return [
        Table(
            "Secondary: right tokens by validation sample, seeds held",
            [
                *words("contrast"),
                *numbers("samples"),
                *words("samples with more or fewer right tokens"),
            ],
            rows,
            note,
            folded="Secondary: right tokens by validation sample",
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
    return Table("Scores on the validation split", columns, rows, note)


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
    metric = results.primary
    rows = []
    for run in results.runs:
        score = run.scores[metric.name]
        seconds = wording.number(run.seconds, 0)
        row = [run.arm, str(run.seed), run.state, wording.count(run.step)]
        row += [wording.large(run.tokens), seconds, wording.score(metric, score.value)]
        rows.append([*row, run.reason or score.reason or "", run.folder])
    titles = ("step", "tokens", "seconds", metric.label)
    columns = [*words("arm"), *numbers("seed"), *words("state"), *numbers(*titles)]
    finished = f"{results.study.runs_finished} of {results.study.runs_planned} finished"
    return Table(
        f"Every run, failed and killed ones too ({finished})",
        [*columns, *words("reason", "folder")],
        rows,
        folded=f"Every run ({finished})",
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
    return [text, Table(caption, [*words("arm"), *numbers(*values)], rows)]


def _scalars(content: dict[str, Any], prefix: str = "") -> Iterable[tuple[str, float]]:
    for key, value in content.items():
        if isinstance(value, dict):
            yield from _scalars(value, f"{prefix}{key}.")
        elif isinstance(value, int | float) and not isinstance(value, bool):
            yield f"{prefix}{key}", float(value)
