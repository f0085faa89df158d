"""The tables of differences: judged contrasts by family, all pairs, and tests over samples."""

from dataclasses import dataclass

from posattn.comparison import wording
from posattn.comparison.answer_named import gate_words
from posattn.comparison.report.methods import exact_p, method_blocks, shown_contrasts
from posattn.comparison.results_schema import Contrast, Results
from posattn.figures.blocks import Block, Table, numbers, words


@dataclass(frozen=True)
class _Family:
    """Contrasts that are judged together, with the words of their table."""

    name: str
    caption: str
    contrasts: list[Contrast]
    correction: str
    against: bool = False


def difference_blocks(results: Results) -> list[Block]:
    """Return the tables of differences of a study of several arms, those that decide first."""
    blocks: list[Block] = [_contrast_table(results, family) for family in _families(results)]
    blocks += method_blocks(results)
    if len(results.arms) > 2:
        blocks.append(_matrix(results))
    return blocks + _secondary(results)


def _families(results: Results) -> list[_Family]:
    baseline = results.study.baseline
    others = [c for c in results.family("baseline") if not c.named]
    caption = f"Difference from {baseline}"
    if not results.named:
        size = wording.plural(_family_size(others), "contrast")
        how = f"corrected by Holm's method over the {size} with the baseline at 5 %."
        return [_Family("differences", caption, others, how)]
    count = wording.plural(_family_size(results.named), "contrast")
    alone = (
        f"corrected by Holm's method over the {count} that the study named before its first step "
        "at 5 %."
        if len(results.named) > 1
        else "at 5 % without correction: the study named this one contrast before its first step."
    )
    title = "Contrasts named beforehand: difference"
    families = [_Family("named", title, results.named, alone, against=True)]
    if others:
        how = (
            "corrected by Holm's method over all pairs that were not named beforehand, a second "
            f"family at 5 %, {gate_words(results)}."
        )
        title = f"Not named beforehand: difference from {baseline}"
        families.append(_Family("differences", title, others, how))
    return families


def _family_size(contrasts: list[Contrast]) -> int:
    return max((c.judgement.family_size for c in contrasts if c.judgement), default=0)


def _contrast_table(results: Results, family: _Family) -> Table:
    metric = results.primary
    note = (
        f"Verdicts come from paired t tests over seeds, {family.correction} Exact p: sign-flip test "
        "over the same seeds, with the least p that n allows. Smallest visible: the difference "
        "shown with 80 % power after correction."
    )
    return Table(
        f"{family.caption} in {metric.label}, {metric.unit_of_difference} "
        f"({metric.better} is better)",
        [
            *words("arm", *(["against"] if family.against else []), "verdict"),
            *numbers("n", "difference", "95 % interval", "corrected interval"),
            *numbers("t test p", "Holm p", "exact p (least)", "smallest visible"),
        ],
        [_contrast_row(results, contrast, family) for contrast in family.contrasts],
        note,
        name=family.name,
    )


def _contrast_row(results: Results, contrast: Contrast, family: _Family) -> list[str]:
    metric, found, judged = results.primary, contrast.difference, contrast.judgement
    low, high = (judged.corrected_low, judged.corrected_high) if judged else (None, None)
    verdict: str = judged.verdict if judged else "not tested"
    if verdict == "not tested" and found.reason:
        verdict = f"not tested: {found.reason}"
    return [
        contrast.first,
        *([contrast.second] if family.against else []),
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
        name="pairs",
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
        rows.append([contrast.first, contrast.second, wording.count(tests[0].samples), counts])
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
                *words("arm", "against"),
                *numbers("samples"),
                *words("samples with more or fewer right tokens"),
            ],
            rows,
            note,
            folded="Secondary: right tokens by validation sample",
            name="samples",
        )
    ]
