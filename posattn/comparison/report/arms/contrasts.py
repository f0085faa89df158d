"""All contrasts of one arm, seen from its side."""

from posattn.comparison import wording
from posattn.comparison.results_schema import ArmResult, Contrast, MetricInfo, Results
from posattn.figures.blocks import Block, Table, numbers, words

Bounds = tuple[float | None, float | None]

OPPOSITE = {"better": "worse", "worse": "better"}


def contrast_table(results: Results, arm: ArmResult) -> list[Block]:
    """Return the differences of the arm from every other that it was compared with."""
    metrics = {metric.name: metric for metric in results.metrics}
    mine = [c for c in results.contrasts if arm.name in (c.first, c.second)]
    if not mine:
        return []
    rows = [_row(metrics[contrast.metric], contrast, arm.name) for contrast in mine]
    note = (
        f"{arm.name} minus the other arm, paired by seed, and the verdict on {arm.name}. Families, "
        "corrections and tests are those of the report; scores other than "
        f"{results.primary.label} have no verdict."
    )
    columns = [
        *words("against", "score", "verdict"),
        *numbers("n", "difference", "95 % interval", "corrected interval", "Holm p"),
    ]
    return [Table(f"{arm.name} against the others", columns, rows, note, name="differences")]


def _row(metric: MetricInfo, contrast: Contrast, arm: str) -> list[str]:
    mine = contrast.first == arm
    found, judged = contrast.difference, contrast.judgement
    verdict: str = judged.verdict if judged else "no verdict"
    if verdict == "not tested" and found.reason:
        verdict = f"not tested: {found.reason}"
    corrected = (judged.corrected_low, judged.corrected_high) if judged else (None, None)
    mean = found.mean if mine or found.mean is None else -found.mean
    return [
        contrast.second if mine else contrast.first,
        f"{metric.label}, {metric.unit_of_difference}",
        verdict if mine else OPPOSITE.get(verdict, verdict),
        str(found.n),
        wording.difference(metric, mean),
        wording.interval(metric, *_turned((found.low, found.high), mine)),
        wording.interval(metric, *_turned(corrected, mine)),
        wording.p_value(judged.p_holm if judged else None),
    ]


def _turned(bounds: Bounds, as_is: bool) -> Bounds:
    if as_is:
        return bounds
    low, high = bounds
    return (None if high is None else -high, None if low is None else -low)
