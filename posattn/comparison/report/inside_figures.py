"""The figures on models' insides: how far heads look, and loss by distance to evidence."""

from posattn.comparison.inside_schema import EvidenceBin, HeadSummary, Inside
from posattn.comparison.report.study_figures import arm_styles
from posattn.comparison.results_schema import ArmResult, Results
from posattn.figures.figure import Figure, Row, make_figure
from posattn.figures.grid import Grid, Grids, draw_grids
from posattn.figures.lines import LineChart, Point, Series, draw_lines

Found = list[tuple[ArmResult, Inside]]


def inside_figures(results: Results) -> dict[str, Figure]:
    """Return the figures on models' insides that the results allow, by name."""
    found = looked_into(results)
    made = [_attention_figure(found), _evidence_figure(results, found)]
    return {figure.name: figure for figure in made if figure is not None}


def looked_into(results: Results) -> Found:
    """Return the arms that evaluations looked into."""
    return [(arm, arm.inside) for arm in results.arms if arm.inside is not None]


def distance_words(bin_: EvidenceBin) -> str:
    """Return the distances of a bin in words."""
    if bin_.stop is None:
        return f"{bin_.start}+"
    return str(bin_.start) if bin_.stop == bin_.start + 1 else f"{bin_.start}\u2013{bin_.stop - 1}"


def _attention_figure(found: Found) -> Figure | None:
    looked = [(arm, inside) for arm, inside in found if inside.heads]
    if not looked:
        return None
    grids = [_grid(arm.name, inside.heads) for arm, inside in looked]
    heads = [head for _, inside in looked for head in inside.heads]
    even = max(head.uniform_distance for head in heads)
    largest = max(max(head.distance for head in heads), even)
    rows: list[Row] = [
        (arm.name, h.layer, h.head, h.runs, h.distance, h.uniform_distance, *_rest(h))
        for arm, inside in looked
        for h in inside.heads
    ]
    columns = ("arm", "layer", "head", "runs", "distance", "uniform_distance")
    return make_figure(
        "attention_distance",
        "How far each head looks",
        "Mean distance in tokens between query and key, weighted by attention, of every head; more colour "
        f"is farther. Attention spread evenly over all keys would give {even:.1f} where all keys are "
        "visible.",
        "; ".join(_reach(arm.name, inside.heads) for arm, inside in looked) + ".",
        lambda width: draw_grids(Grids(grids, "head", largest), width),
        (*columns, "entropy", "first", "last", "cls"),
        rows,
    )


def _rest(head: HeadSummary) -> Row:
    return (head.entropy, head.first, head.last, head.cls)


def _grid(name: str, heads: list[HeadSummary]) -> Grid:
    layers = list(dict.fromkeys(head.layer for head in heads))
    count = max(head.head for head in heads)
    values = {(head.layer, head.head): head.distance for head in heads}
    table = [[values.get((layer, head)) for head in range(1, count + 1)] for layer in layers]
    return Grid(name, layers, [str(head) for head in range(1, count + 1)], table)


def _reach(name: str, heads: list[HeadSummary]) -> str:
    reach = [head.distance for head in heads]
    return f"{name} from {min(reach):.1f} to {max(reach):.1f} tokens"


def _evidence_figure(results: Results, found: Found) -> Figure | None:
    looked = [(arm, inside) for arm, inside in found if inside.evidence]
    if not looked:
        return None
    styles = arm_styles(results)
    series = [
        Series(
            arm.name,
            styles[arm.name],
            [
                Point(float(place), b.summary.mean, b.summary.sd)
                for place, b in enumerate(nearest(inside))
                if b.summary.mean is not None
            ],
        )
        for arm, inside in looked
    ]
    labels = [(float(place), distance_words(b)) for place, b in enumerate(nearest(looked[0][1]))]
    chart = LineChart(
        series,
        "tokens to the nearest token that is not masked",
        "loss, nats per masked token",
        x_ticks=labels,
    )
    rows: list[Row] = [
        (arm.name, b.side, b.start, b.stop, b.targets, b.summary.n, b.summary.mean, b.summary.sd)
        for arm, inside in looked
        for b in inside.evidence
    ]
    ends = [
        f"{s.name} from {s.points[0].y:.3f} to {s.points[-1].y:.3f}" for s in series if s.points
    ]
    return make_figure(
        "evidence_distance",
        "Loss by distance to evidence",
        "Loss of masked tokens by the distance to the nearest token that is neither masked nor special: "
        "mean over seeds, band \u00b1 1 sample standard deviation, not tested. All runs see the same masks.",
        "First and last value by arm: " + "; ".join(ends) + ".",
        lambda width: draw_lines(chart, width),
        ("arm", "side", "start", "stop", "targets", "n", "mean", "sd"),
        rows,
    )


def nearest(inside: Inside) -> list[EvidenceBin]:
    """Return the bins of the distance to the nearer side."""
    return [b for b in inside.evidence if b.side == "nearest"]
