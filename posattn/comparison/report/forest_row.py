"""`forest_row`: one paired difference as a line of a forest plot."""

from posattn.comparison import wording
from posattn.comparison.results_schema import MetricInfo
from posattn.comparison.statistics import PairedDifference
from posattn.comparison.verdicts import Judgement
from posattn.figures.canvas import Style
from posattn.figures.forest import ForestRow


def forest_row(
    metric: MetricInfo,
    name: str,
    style: Style,
    found: PairedDifference | None,
    judged: Judgement | None,
) -> ForestRow:
    """Return the difference in the metric's unit, with its own and its corrected interval."""

    def scaled(value: float | None) -> float | None:
        return None if value is None else value * metric.factor

    said = "not compared"
    if found is not None and found.mean is not None:
        shown = [wording.difference(metric, found.mean)]
        if found.low is not None:
            shown.append(wording.interval(metric, found.low, found.high))
        said = f"{' '.join(shown)}  n = {found.n}"
    return ForestRow(
        name=name,
        style=style,
        mean=scaled(found.mean) if found else None,
        low=scaled(found.low) if found else None,
        high=scaled(found.high) if found else None,
        corrected_low=scaled(judged.corrected_low) if judged else None,
        corrected_high=scaled(judged.corrected_high) if judged else None,
        words=said,
        verdict=judged.verdict if judged else "not tested",
    )
