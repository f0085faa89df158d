"""The section on models' insides: what the maths says, where heads look, what distance to evidence costs."""

from posattn.comparison import wording
from posattn.comparison.inside_schema import CheckSummary, EvidenceBin, HeadSummary, Inside
from posattn.comparison.report.inside_figures import (
    Found,
    distance_words,
    looked_into,
    nearest,
)
from posattn.comparison.results_schema import ArmResult, Results
from posattn.figures.blocks import Block, Bullets, Picture, Section, Table, Text, numbers, words
from posattn.figures.figure import Figure

GROUPS = {
    "moved": ("shift", ("filler", "positions")),
    "shuffled": ("permutation", ("shuffled",)),
    "reversed": ("permutation", ("reversed",)),
    "padded, other rows": ("padding", ("right", "left", "batch")),
}
NOUNS = {
    ("shift", "filler"): "moved in filler by",
    ("shift", "positions"): "moved by given positions by",
    ("permutation", "shuffled"): "shuffled",
    ("permutation", "reversed"): "reversed",
    ("padding", "right"): "padded on the right by",
    ("padding", "left"): "padded on the left by",
    ("padding", "batch"): "beside shorter rows",
}


def inside_sections(results: Results, figures: dict[str, Figure]) -> list[Section]:
    """Return the section on models' insides; it has no blocks where no evaluation looked inside."""
    found = looked_into(results)
    blocks: list[Block] = []
    if any(inside.checks for _, inside in found):
        blocks += _checks(found)
    blocks += _heads(found, figures)
    blocks += _evidence(results, found, figures)
    notes = [f"{arm.name}: {note}" for arm, inside in found for note in inside.notes]
    if notes:
        blocks += [Text("Not measured:"), Bullets(notes)]
    return [Section("inside", "Looking inside", blocks)]


def _checks(found: Found) -> list[Block]:
    rows: list[list[str]] = []
    marked: dict[int, str] = {}
    for number, (arm, inside) in enumerate(found):
        rows.append([arm.name, *(_group(inside, *group) for group in GROUPS.values())])
        if any(check.broken for check in inside.checks):
            marked[number] = "bad"
    note = (
        "Largest change of a logit, as a share of the largest logit, over all finished runs. The traits of "
        "an arm's parts say whether text may change when it is moved, shuffled or reversed; padding and "
        "other rows may never change anything."
    )
    table = Table(
        "What the maths says, and whether it held",
        [*words("arm"), *words(*GROUPS)],
        rows,
        note,
        marked=marked,
    )
    return [table, _every_check(found)]


def _group(inside: Inside, evaluation: str, names: tuple[str, ...]) -> str:
    """Return in words how the checks of one kind ended, the broken or the tightest one."""
    mine = [c for c in inside.checks if c.evaluation == evaluation and c.name in names and c.judged]
    if not mine:
        return wording.NONE
    broken = [check for check in mine if check.broken]
    shown = max(broken or mine, key=lambda check: check.relative * (1 if check.same else -1))
    must = "must stay" if shown.same else "must change"
    if broken:
        return f"NOT HELD: {must}, {_share(shown.relative)}"
    return f"{'stays' if shown.same else 'changes'}, {_share(shown.relative)}"


def _every_check(found: Found) -> Table:
    rows: list[list[str]] = []
    marked: dict[int, str] = {}
    for arm, inside in found:
        for check in inside.checks:
            if check.broken:
                marked[len(rows)] = "bad"
            rows.append(_check_row(arm, check))
    columns = [*words("arm", "check", "must"), *numbers("change", "tolerance", "held")]
    return Table(
        "Every check", [*columns, *words("because")], rows, folded="Every check", marked=marked
    )


def _share(value: float) -> str:
    return f"{value:.1e}" if value else "0"


def _check_row(arm: ArmResult, check: CheckSummary) -> list[str]:
    noun = NOUNS.get((check.evaluation, check.name), f"{check.evaluation}: {check.name}")
    held = f"{check.held} of {check.judged}" if check.judged else "not judged alone"
    return [
        arm.name,
        noun if check.amount is None else f"{noun} {check.amount}",
        "stay" if check.same else "change",
        _share(check.relative),
        f"{check.tolerance:.0e}",
        held,
        check.because,
    ]


def _heads(found: Found, figures: dict[str, Figure]) -> list[Block]:
    looked = [(arm, inside) for arm, inside in found if inside.heads]
    if not looked:
        return []
    rows = [_head_row(arm, head) for arm, inside in looked for head in inside.heads]
    columns = [
        *words("arm", "layer"),
        *numbers("head", "distance", "evenly spread", "entropy, nats", "evenly spread"),
        *numbers("on the first token", "on the last", "on [CLS]"),
    ]
    caption = "Every head: mean distance in tokens, entropy, and share of attention on the ends"
    note = "Means over the queries of some validation text and over finished runs; not tested."
    table = Table(caption, columns, rows, note, folded=caption)
    return [Picture(figures["attention_distance"]), table]


def _head_row(arm: ArmResult, head: HeadSummary) -> list[str]:
    shares = (head.first, head.last, head.cls)
    return [
        arm.name,
        head.layer,
        str(head.head),
        wording.number(head.distance, 2),
        wording.number(head.uniform_distance, 2),
        wording.number(head.entropy, 3),
        wording.number(head.uniform_entropy, 3),
        *(wording.number(share, 3) for share in shares),
    ]


def _evidence(results: Results, found: Found, figures: dict[str, Figure]) -> list[Block]:
    looked = [(arm, inside) for arm, inside in found if inside.evidence]
    if not looked:
        return []
    blocks: list[Block] = [Picture(figures["evidence_distance"])]
    for side, of_side in (("nearest", "nearer"), ("left", "left"), ("right", "right")):
        caption = f"Loss by distance to the next evidence on the {of_side} side, nats per target"
        folded = "" if side == "nearest" else caption
        note = "Mean \u00b1 sample sd over finished seeds, not tested; n counts targets."
        blocks.append(_evidence_table(looked, side, caption, note, folded))
        if side == "nearest" and len(looked) > 1:
            blocks.append(_difference_table(results, looked))
    return blocks


def _evidence_table(looked: Found, side: str, caption: str, note: str, folded: str) -> Table:
    bins = [bin_ for bin_ in looked[0][1].evidence if bin_.side == side]
    titles = [f"{distance_words(bin_)} (n = {bin_.targets})" for bin_ in bins]
    rows = [
        [arm.name, *(_evidence_cell(bin_) for bin_ in inside.evidence if bin_.side == side)]
        for arm, inside in looked
    ]
    return Table(caption, [*words("arm"), *numbers(*titles)], rows, note, folded=folded)


def _difference_table(results: Results, looked: Found) -> Table:
    baseline = results.study.baseline
    compared = [(arm, inside) for arm, inside in looked if not arm.is_baseline]
    titles = [distance_words(bin_) for bin_ in nearest(compared[0][1])]
    rows = [[arm.name, *map(_difference_cell, nearest(inside))] for arm, inside in compared]
    return Table(
        f"Difference from {baseline} by distance to the nearest evidence, nats per target",
        [*words("arm"), *numbers(*titles)],
        rows,
        "Paired over seeds with the same masks: mean and 95 % interval, not corrected and not tested.",
    )


def _evidence_cell(bin_: EvidenceBin) -> str:
    text = wording.number(bin_.summary.mean, 3)
    if bin_.summary.sd is None:
        return text
    return f"{text} \u00b1 {wording.number(bin_.summary.sd, 3)}"


def _difference_cell(bin_: EvidenceBin) -> str:
    found = bin_.difference
    if found is None or found.mean is None:
        return wording.NONE
    text = wording.signed(found.mean, 3)
    if found.low is None:
        return text
    return f"{text} [{wording.signed(found.low, 3)}, {wording.signed(found.high, 3)}]"
